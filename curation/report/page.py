"""The report: one self-contained HTML file about a run, charts as inline SVG, nothing fetched from anywhere."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from typing import Any

import polars as pl

from curation.engine.workspace import Workspace
from curation.report.funnel import funnel_rows

__all__ = ["REPORT_NAME", "write_report"]

REPORT_NAME = "report.html"
_EXAMPLES = 4
_Bar = tuple[str, list[tuple[str, float]], float | None, str]
_WIDTH, _ROW, _LEFT = 960, 22, 230


def _bars(rows: list[_Bar], scale: float) -> Any:
    """Horizontal stacked bars: (label, [(class, amount)], target or None, text); ``scale`` is the longest bar."""
    from markupsafe import Markup, escape

    width, parts = _WIDTH - _LEFT - 190, []
    for number, (label, segments, target, text) in enumerate(rows):
        y, x = number * _ROW, float(_LEFT)
        parts.append(f'<text x="{_LEFT - 8}" y="{y + 15}" text-anchor="end">{escape(label)}</text>')
        for kind, amount in segments:
            length = width * amount / scale if scale else 0
            parts.append(f'<rect class="{kind}" x="{x:.1f}" y="{y + 3}" width="{max(length, 0):.1f}" height="16"/>')
            x += length
        if target is not None and scale:
            at = _LEFT + width * target / scale
            parts.append(f'<line class="target" x1="{at:.1f}" x2="{at:.1f}" y1="{y + 1}" y2="{y + 21}"/>')
            x = max(x, at)
        parts.append(f'<text class="soft" x="{x + 8:.1f}" y="{y + 15}">{escape(text)}</text>')
    height = max(len(rows), 1) * _ROW + 4
    return Markup(f'<svg viewBox="0 0 {_WIDTH} {height}" role="img">{"".join(parts)}</svg>')


def _funnel_svg(rows: list[dict[str, Any]]) -> Any:
    bars: list[_Bar] = []
    for row in rows:
        lost = row["rejected"] + row["failed"]
        segments = [("kept", row["kept"]), ("merged", row["merged"]), ("lost", lost), ("add", row["added"])]
        bars.append(
            (row["stage"], segments, None, f"{row['kept'] + row['added']:,} of {row['rows_in'] + row['added']:,}")
        )
    return _bars(bars, max((row["rows_in"] + row["added"] for row in rows), default=1))


_BLOCKS = (
    ("difficulty", "Difficulty", "Share of the pool at each difficulty; the line is the recipe's target."),
    ("level1", "Level-1 categories", "Share of the pool in each level-1 category."),
    ("bucket", "Buckets", "The largest buckets <primary, secondary>; the line is the share the recipe asks for."),
    ("origin", "Origin", "Where candidates come from; the line is the recipe's target."),
)


def _short(name: str, limit: int = 36) -> str:
    """A bucket or leaf that fits beside its bar; the end of a dotted path says most."""
    name = name.removesuffix("|")
    return name if len(name) <= limit else "…" + name[1 - limit :]


def _share_blocks(shares: pl.DataFrame) -> list[dict[str, Any]]:
    blocks = []
    for what, title, text in _BLOCKS:
        rows = shares.filter(pl.col("share_of") == what)
        if what == "difficulty":
            rows = rows.sort(pl.col("name").cast(pl.Int32))
        else:
            rows = rows.sort(["rows", "name"], descending=[True, False]).head(25)
        if rows.is_empty():
            continue
        scale = float(max(rows["share"].max() or 0, rows["target"].max() or 0)) or 1.0  # type: ignore[type-var,arg-type]
        bars: list[_Bar] = []
        for row in rows.to_dicts():
            target = row["target"]
            note = f"{row['rows']:,} · {row['share']:.1%}"
            note += f" (target {target:.1%})" if target is not None and what != "bucket" else ""
            bars.append((_short(row["name"]), [("kept", row["share"])], target, note))
        blocks.append({"title": title, "text": text, "svg": _bars(bars, scale)})
    return blocks


def _examples(pool: pl.LazyFrame) -> list[dict[str, Any]]:
    frame = (
        pool.sort(["represents", "candidate_id"], descending=[True, False])
        .group_by("difficulty", maintain_order=True)
        .head(_EXAMPLES)
        .sort("difficulty", "represents", descending=[False, True])
        .select("difficulty", "text", "primary", "tool_plan", "represents")
        .collect()
    )
    rows = frame.to_dicts()
    for row in rows:
        row["plan"] = " → ".join(step["tool"] for step in row["tool_plan"])
    return rows


def _rejects(workspace: Workspace, run: str) -> list[dict[str, Any]]:
    return (
        workspace.table("rejects", run)
        .group_by("stage", "reason")
        .agg(rows=pl.len(), weight=pl.col("weight").sum(), example=pl.col("text").str.slice(0, 80).min())
        .sort("stage", "rows", "reason", descending=[False, True, False])
        .collect()
        .to_dicts()
    )


def write_report(workspace: Workspace, run: str = "latest", target: Path | None = None) -> Path:
    """Write the report of a run and return its path (``report.html`` in the workspace unless ``target`` is given)."""
    from jinja2 import Environment

    document = workspace.run(run)
    tables = workspace.tables(run)
    funnel = funnel_rows(workspace, run)
    pool = workspace.table("candidate_pool", run) if "candidate_pool" in tables else None
    headline = [("raw rows", funnel[0]["rows_in"]), ("distinct queries", workspace.rows("queries", run))]
    if pool is not None:
        headline += [("candidates", workspace.rows("candidate_pool", run))]
        headline += [("raw rows they stand for", int(pool.select(pl.col("represents").sum()).collect().item()))]
    metrics = workspace.table("metrics", run).collect().with_columns(pl.col("value").round(4)).to_dicts()
    for row in metrics:
        row["value"] = f"{row['value']:,.4f}".rstrip("0").rstrip(".")
    template = Environment(autoescape=True).from_string(
        files("curation.report").joinpath("page.html").read_text(encoding="utf-8")
    )
    page = template.render(
        title=f"Candidate pool of {workspace.root.name}",
        run=document,
        place=str(workspace.root),
        headline=[(label, f"{value:,}") for label, value in headline],
        funnel=funnel,
        funnel_svg=_funnel_svg(funnel),
        shares=_share_blocks(workspace.table("pool_shares", run).collect()) if "pool_shares" in tables else [],
        examples=_examples(pool) if pool is not None else [],
        rejects=_rejects(workspace, run),
        metrics=metrics,
    )
    target = target or workspace.root / REPORT_NAME
    temporary = target.with_name(f".{target.name}.new")
    temporary.write_text(page, encoding="utf-8")
    temporary.replace(target)
    return target
