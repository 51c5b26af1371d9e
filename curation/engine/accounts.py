"""Nothing is lost: rows and weights of every stage add up, and go on from those of the stage before it."""

from __future__ import annotations

from typing import Any

from curation.engine.stage import Stage
from curation.errors import CurationError

__all__ = ["check_account"]


def check_account(stage: Stage, account: dict[str, int], before: dict[str, Any] | None) -> None:
    """Check what a stage says became of its rows.

    Args:
        stage: The stage.
        account: Its totals, see :class:`curation.engine.stage.Account`, with what it rejected.
        before: The account of the stage it comes after; None where it starts a chain.

    Raises:
        CurationError: Rows or weight are missing or too many, or are not those that the stage before passed on.
    """
    rows = account["kept"] + account["merged"] + account["rejected"] + account["failed"]
    weight = sum(account[f"weight_{what}"] for what in ("out", "rejected", "failed", "earlier"))
    if rows != account["rows_in"]:
        raise CurationError(f"stage {stage.name} lost rows: {account['rows_in']:,} in, {rows:,} accounted for")
    if weight != account["weight_in"]:
        raise CurationError(
            f"stage {stage.name} lost weight: {account['weight_in']:,} raw rows in, {weight:,} accounted for"
        )
    if before is None:
        return
    for ours, theirs in (("rows_in", "kept"), ("weight_in", "weight_out")):
        if account[ours] != before[theirs]:
            raise CurationError(
                f"stage {stage.name} took in {account[ours]:,} ({ours}) of the "
                f"{before[theirs]:,} that {stage.after} passed on"
            )
