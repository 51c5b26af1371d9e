"""The stages there are, in the order of their chain. A new stage is one module and one line here."""

from __future__ import annotations

from curation.engine.stage import Stage
from curation.stages import (
    annotate,
    difficulty,
    embed,
    geometric,
    ingest,
    irrelevance,
    lexical,
    pool,
    proposals,
    seeds,
    semantic,
    survivors,
    synthesis,
    taxonomy,
)

__all__ = ["STAGES"]

STAGES: dict[str, Stage] = {
    module.STAGE.name: module.STAGE
    for module in (
        ingest,
        lexical,
        embed,
        taxonomy,
        seeds,
        annotate,
        proposals,
        semantic,
        survivors,
        difficulty,
        synthesis,
        geometric,
        irrelevance,
        pool,
    )
}
