"""A small pipeline over real contracts, to test the engine without the product's stages."""

from __future__ import annotations

import os
import signal
import time

import polars as pl
from pydantic import Field

from curation.engine.stage import Account, Params, Stage


class IngestParams(Params):
    rows: int = Field(40, ge=0)
    parts: int = 4
    chunk: int = 10
    slow: float = 0.0


class LexicalParams(Params):
    modulus: int = 2
    lose: int = 0
    file: str | None = Field(None, json_schema_extra={"input_file": True})


def ingest(ctx) -> None:
    per_part = ctx.params.rows // ctx.params.parts
    for number in range(ctx.params.parts):
        with ctx.part(f"{number:04d}") as part:
            if part.done:
                continue
            time.sleep(ctx.params.slow)
            ids = list(range(number * per_part, (number + 1) * per_part))
            frame = pl.DataFrame({"query_id": ids}, schema={"query_id": pl.UInt64}).with_columns(
                text=pl.format("q {}", "query_id"),
                norm=pl.format("q {}", "query_id"),
                count=pl.lit(1, pl.Int64),
                first_seen=pl.lit(None, pl.Datetime("us")),
                last_seen=pl.lit(None, pl.Datetime("us")),
                lang=pl.lit("en"),
                script=pl.lit("Latn"),
                n_chars=pl.lit(3, pl.Int32),
                masked=pl.lit([], pl.List(pl.String)),
                sources=pl.lit([], pl.List(pl.String)),
            )
            part.write("queries", frame.sample(fraction=1.0, shuffle=True, seed=number))
            part.account(Account(rows_in=len(ids), kept=len(ids), weight_in=len(ids), weight_out=len(ids)))
            part.metric(f"part_{number}", len(ids), "rows")
            if os.environ.get("TOY_KILL_AFTER") == str(number):
                os.kill(os.getpid(), signal.SIGKILL)


def lexical(ctx) -> None:
    queries = ctx.read("queries", ["query_id", "count"])
    size = ctx.params.modulus
    groups = queries.select(
        "query_id",
        representative_id=pl.col("query_id") // size * size,
        similarity=pl.lit(1.0, pl.Float32),
        group_count=pl.lit(size, pl.Int64),
        kept=pl.col("query_id") % size == 0,
    )
    refused = groups.head(ctx.params.lose)
    with ctx.part() as part:
        part.write("lexical_groups", groups.slice(ctx.params.lose))
        part.account(
            Account(
                rows_in=groups.height,
                kept=(groups["query_id"] == groups["representative_id"]).sum(),
                merged=(groups["query_id"] != groups["representative_id"]).sum() - refused.height,
                weight_in=groups.height,
                weight_out=groups.height - refused.height,
            )
        )


STAGES = {
    "ingest": Stage(
        "ingest", ingest, IngestParams, makes=("queries",), free=("slow", "chunk"), seeded=False, title="make rows"
    ),
    "lexical": Stage(
        "lexical", lexical, LexicalParams, reads=("queries",), makes=("lexical_groups",), after="ingest", seeded=False
    ),
}
