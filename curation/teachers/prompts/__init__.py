"""Prompt templates: one file a job and language, ``JOB.LANGUAGE.j2``, and ``parts.j2`` with what several share.

The first line of a template is a comment with its version, which stands in the ids of requests; raise it when the
wording changes what is asked. The bytes of all files here are part of the key of every stage that imports this
package, so a changed word is never answered from tables made with another.

A template is the system message alone. What people typed goes into a message of its own, as JSON.
"""

from __future__ import annotations

from typing import Literal, get_args

__all__ = ["JOBS", "LANGUAGES", "Job", "Language"]

Job = Literal["annotate", "induce", "name", "propose", "refine", "score", "synthesise", "verify"]
Language = Literal["en", "zh"]

JOBS: tuple[Job, ...] = get_args(Job)
LANGUAGES: tuple[Language, ...] = get_args(Language)
