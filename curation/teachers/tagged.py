"""The tagged seeds of a person's file, as teachers that induce a taxonomy take them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from curation.algorithms.language import detect
from curation.algorithms.scripts import DEFAULT_LANGUAGES, LANGUAGES
from curation.errors import CurationError
from curation.teachers.induction import TaggedSeed
from curation.teachers.seeds_file import read_seeds_file

if TYPE_CHECKING:
    from curation.domain import Domain

__all__ = ["tagged_seeds"]


def tagged_seeds(file: str | None, domain: Domain) -> list[TaggedSeed]:
    """The rows with tags, by query id and labeller.

    Args:
        file: The seeds file, ``seeds.file`` of the recipe; leaves in it do not count.
        domain: For the languages that queries may be in.

    Raises:
        CurationError: There is no file, it is wrong (line named), or nothing in it has tags.
    """
    hint = "Write queries to label with `curate review DIR --file`, fill in `tags`, and run again."
    if file is None:
        raise CurationError("taxonomy.induce needs tagged seeds, and there is no seeds file", hint)
    rows = read_seeds_file(Path(file), None).filter(pl.col("tags").list.len() > 0)
    if rows.is_empty():
        raise CurationError(f"taxonomy.induce needs tagged seeds, and no row of {file} has tags", hint)
    known = tuple(language for language in domain.languages if language in LANGUAGES)
    found, _ = detect(rows["text"], known or DEFAULT_LANGUAGES)
    rows = rows.with_columns(lang=pl.col("lang").fill_null(found)).sort("query_id", "labelled_by", nulls_last=True)
    return [
        TaggedSeed(query_id, text, lang, tuple(tags))
        for query_id, text, lang, tags in rows.select("query_id", "text", "lang", "tags").iter_rows()
    ]
