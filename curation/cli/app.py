"""All commands, gathered."""

from __future__ import annotations

import typer

from curation.cli import look, review, run, start

__all__ = ["app"]

app = typer.Typer(
    name="curate",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="""Turn a raw query log into a candidate pool: labelled, deduplicated, difficulty-graded training queries.

Start with `curate init out && curate run out` on the sample log, or
`curate init out --log DIR --text-column query` on your own.
Then `curate show candidate_pool out`, or `duckdb out/catalogue.duckdb`.""",
)

for module in (start, run, look, review):
    module.register(app)
