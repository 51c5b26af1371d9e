"""The contract of `teacher_calls`."""

from __future__ import annotations

import dataframely as dy


class TeacherCalls(dy.Schema):
    """A row is a request to a teacher outside this process."""

    request_key = dy.String(
        primary_key=True, description="hash of the rendered request, schema, model and parameters"
    )
    stage = dy.String(primary_key=True, description="the stage that asked")
    model = dy.String(description="the model asked")
    prompt_tokens = dy.Int64(min=0, description="tokens sent")
    completion_tokens = dy.Int64(min=0, description="tokens received")
    cost = dy.Float64(min=0, description="in the recipe's currency")
    latency = dy.Float64(min=0, description="seconds")
    outcome = dy.String(description="ok, repaired, truncated, failed")
    answer = dy.String(nullable=True, description="raw answer")
