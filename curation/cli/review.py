"""The review command: hand proposals to a person, and check what comes back."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from curation.cli.console import console
from curation.errors import CurationError

__all__ = ["register"]

REVIEW_FILE = Path("review") / "seeds.csv"


def review(
    directory: Annotated[Path, typer.Argument(help="The workspace directory.")] = Path(),
    check: Annotated[Path | None, typer.Option(help="Check an edited seeds file instead.")] = None,
) -> None:
    """Write the proposed seeds to a file for labelling, or check one that was edited.

    Fill in `primary` (a leaf of the taxonomy) or `tags`, name the file in the recipe as `seeds.file`, run again.
    """
    import polars as pl

    from curation.domain import load_domain
    from curation.engine.recipe import Recipe
    from curation.engine.workspace import Workspace

    recipe = Recipe.load(directory)
    if check is not None:
        from curation.teachers.seeds_file import read_seeds_file

        seeds = read_seeds_file(check, load_domain(recipe.domain).taxonomy)
        labelled = seeds.filter(pl.col("primary").is_not_null()).height
        tagged = seeds.filter(pl.col("tags").list.len() > 0).height
        console.print(
            f"{check}: {seeds.height:,} rows, {labelled:,} with a primary leaf, {tagged:,} with tags.", soft_wrap=True
        )
        console.print(
            f"To use it: put `seeds: {{file: {check}}}` in {recipe.path}, then `curate run`.", soft_wrap=True
        )
        return
    workspace = Workspace(directory)
    proposed = workspace.table("seeds").filter(pl.col("origin") == "proposed").collect()
    if proposed.is_empty():
        console.print("Nothing waits for review. Set seeds.propose in the recipe to get proposals.")
        return
    target = directory / REVIEW_FILE
    if target.exists():
        raise CurationError(
            f"{target} is there already", f"Check it with `curate review --check {target}`, or move it."
        )
    target.parent.mkdir(exist_ok=True)
    proposed.select(
        "text",
        "lang",
        tags=pl.lit(""),
        primary=pl.lit(""),
        secondary=pl.lit(""),
        reason=pl.lit(""),
        labelled_by=pl.lit(""),
    ).write_csv(target)
    console.print(f"{proposed.height:,} proposed seeds are in {target}.", highlight=False, soft_wrap=True)
    console.print(f"Fill in `primary` or `tags`, then: curate review {directory} --check {target}", soft_wrap=True)


def register(app: typer.Typer) -> None:
    """Add this module's commands to ``app``."""
    app.command()(review)
