"""Versions and what differs between them as lines for the page, and where the files of a review lie."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from curation.taxonomy.compare import Change
from curation.taxonomy.review import Review

__all__ = ["line_of_change", "lines_of_versions", "seeds_place", "stamp"]

_SIGNS = {"added": "+", "removed": "−"}


def stamp(review: Review) -> Any:
    """Another value whenever a run was published, or the recipe or a file that makes the versions was written."""
    base = [Path(review.section.base)] if review.section.base else []
    files = [review.recipe.path, review.versions_file, review.root / "latest" / "run.json", *base]
    return [_stamp(file) for file in files if file]


def _stamp(file: Path) -> tuple[int, int, int] | None:
    try:
        status = file.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino


def seeds_place(file: Path) -> Path | None:
    """The CSV file that labels are written into: the seeds file, or one in it if that is a directory; else none."""
    if file.is_dir():
        return file / "review_page.csv"
    return file if file.suffix.lower() == ".csv" else None


def lines_of_versions(review: Review) -> list[dict[str, Any]]:
    """All versions, the newest first."""
    rows = []
    for version in reversed(review.history.versions.values()):
        record = version.record
        rows.append(
            {
                "version": version.name,
                "current": version.name == review.current.name,
                "nodes": len(version.taxonomy.nodes),
                "leaves": len(version.taxonomy.leaves),
                "from": record.from_ if record else None,
                "return_to": record.return_to if record else None,
                "at": record.at if record else None,
                "by": record.by if record else None,
                "auto": record.auto if record else False,
                "note": record.note if record else None,
                "convergence": record.convergence if record else None,
            }
        )
    return rows


def line_of_change(change: Change) -> dict[str, Any]:
    """A change: its sign, what happened to which node, the value before and after."""
    return {
        "sign": _SIGNS.get(change.change, "~"),
        "text": f"{change.node_id} {change.change}",
        "before": change.before,
        "after": change.after,
    }
