"""A workspace for reviews: a small domain, and tables as a run would have published them."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa

import schemas
from curation.algorithms.normalise import normalise, query_ids
from curation.engine.recipe import Recipe
from curation.engine.session import Session
from curation.engine.stage import Account, Params, Stage
from curation.stages import taxonomy
from curation.taxonomy.document import taxonomy_text
from curation.taxonomy.proposal import Proposal, to_frame
from tests.taxonomy.trees import START

RECIPE = "log: {path: log}\ndomain: domain\n"


class FolderParams(Params):
    folder: str = "."
    mark: str = ""


def give(ctx: Any) -> None:
    with ctx.part() as part:
        for table in ctx.stage.makes:
            part.write(table, pl.read_parquet(Path(ctx.params.folder) / f"{table}.parquet"))
        part.account(Account(rows_in=0, kept=0))


STAGES = {
    "taxonomy": replace(taxonomy.STAGE, reads=(), shared=()),
    "given": Stage("given", give, FolderParams, makes=("seeds", "annotations", "proposals", "queries")),
}


def seeds(*rows: tuple[str, str | None]) -> pl.DataFrame:
    """`seeds` of (text, leaf); those without a leaf are only proposed."""
    empty = schemas.load("seeds").schema.create_empty()
    ids = query_ids(normalise(pa.array([text for text, _ in rows], pa.large_string()))).tolist()
    out = [
        {
            "query_id": query_id,
            "text": text,
            "lang": "en",
            "tags": [],
            "primary": leaf,
            "secondary": [],
            "given_primary": leaf,
            "given_secondary": [],
            "given_version": leaf and "1",
            "origin": "file" if leaf else "proposed",
        }
        for query_id, (text, leaf) in zip(ids, rows, strict=True)
    ]
    return pl.DataFrame(out, schema=dict(empty.schema))


def _queries(texts: list[str]) -> pl.DataFrame:
    """`queries` of some texts."""
    ids = query_ids(normalise(pa.array(texts, pa.large_string()))).tolist()
    empty = schemas.load("queries").schema.create_empty()
    fields = {"lang": "en", "script": "Latn", "count": 1, "n_chars": 2, "masked": [], "sources": []}
    rows = [fields | {"query_id": n, "text": text, "norm": text} for n, text in zip(ids, texts, strict=True)]
    return pl.DataFrame(rows, schema=dict(empty.schema))


def annotations(*leaves: str) -> pl.DataFrame:
    empty = schemas.load("annotations").schema.create_empty()
    fields = {"constraints": [], "confidence": 1.0, "teacher": "t", "taxonomy_version": "1", "secondary": []}
    rows = [fields | {"query_id": n, "primary": p, "unsolvable_confidence": 0.0} for n, p in enumerate(leaves)]
    return pl.DataFrame(rows, schema=dict(empty.schema))


def workspace(
    root: Path,
    proposals: list[Proposal] | None = None,
    seed_rows: pl.DataFrame | None = None,
    rows: pl.DataFrame | None = None,
    recipe: str = RECIPE,
    queries: list[str] | None = None,
    versions: str | None = None,
) -> Path:
    """Publish a run on ``root`` and return it."""
    (root / "domain").mkdir(parents=True, exist_ok=True)
    (root / "domain" / "taxonomy.yaml").write_text(taxonomy_text(START), encoding="utf-8")
    (root / "log").mkdir(exist_ok=True)
    (root / "recipe.yaml").write_text(recipe, encoding="utf-8")
    given = root / "given"
    given.mkdir(exist_ok=True)
    to_frame(proposals or []).write_parquet(given / "proposals.parquet")
    (seeds() if seed_rows is None else seed_rows).write_parquet(given / "seeds.parquet")
    (annotations() if rows is None else rows).write_parquet(given / "annotations.parquet")
    _queries(queries or []).write_parquet(given / "queries.parquet")
    mark = hashlib.sha256(b"".join(file.read_bytes() for file in sorted(given.iterdir()))).hexdigest()
    document = {
        "log": {"path": "log"},
        "domain": "domain",
        "taxonomy": {"versions": versions},
        "given": {"folder": str(given), "mark": mark},
    }
    with Session(Recipe.from_dict(document, root=root, stages=STAGES), root, stages=STAGES) as session:
        session.run()
    return root
