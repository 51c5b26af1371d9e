"""What all parts of a recipe have in common."""

from __future__ import annotations

from typing import Any, get_args

from pydantic import BaseModel, ConfigDict, ValidationInfo, field_validator

__all__ = ["Settings"]


class Settings(BaseModel):
    """Base of a part of the recipe: unknown keys are errors, values do not change, yes and no are no numbers."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    @field_validator("*", mode="before")
    @classmethod
    def _no_truth_for_a_number(cls, value: Any, info: ValidationInfo) -> Any:
        if isinstance(value, bool) and info.field_name is not None:
            kind = cls.model_fields[info.field_name].annotation
            kinds = {kind, *get_args(kind)}
            if kinds & {int, float} and bool not in kinds:
                raise ValueError("a number is wanted, not true or false")
        return value
