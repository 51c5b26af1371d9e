"""The contract of `metrics`."""

from __future__ import annotations

import dataframely as dy


class Metrics(dy.Schema):
    """A row is one number a stage reports of its own work, such as a radius or a share."""

    stage = dy.String(primary_key=True, description="the stage")
    name = dy.String(primary_key=True, description="what is measured; the stage's docstring says how")
    value = dy.Float64(description="the number")
    unit = dy.String(description="its unit: rows, share, cosine, seconds ...")
