"""What is not a query at all, and the one-line form of what is."""

from __future__ import annotations

import polars as pl

__all__ = ["REASONS", "screen", "shown", "tidy"]

REASONS = {
    "null_text": "the text is missing",
    "binary": "bytes that are no text: a data URI, a Base64 blob, mostly undecodable characters",
    "control_characters": "a NUL, or too large a share of control and replacement characters",
    "empty": "nothing visible: its normal form is empty",
    "too_long": "more characters than allowed",
    "too_short": "fewer characters than asked for",
    "bad_encoding": "not UTF-8",
    "bad_row": "a broken CSV row: a stray quotation mark, or another number of fields than the header",
    "bad_json": "a line that is no JSON object",
    "not_text": "the text of a JSON object is a number, a list or an object",
}
"""Every reason the ingest stage refuses a row for."""

_CONTROL = r"[\p{Cc}\x{FFFD}&&[^\t\n\r]]"
_DATA_URI = r"(?i)\bdata:[a-z]+/[a-z0-9.+-]+(?:;[a-z0-9=-]+)*;(?-i:base64),"
_SHORTEST_BLOB = 64
_BLOB = rf"^[A-Za-z0-9+/_-]{{{_SHORTEST_BLOB},}}={{0,2}}$"
_MOSTLY = 0.5
_BLANKS = r"[\s\p{Cc}]+"
_NEEDS_TIDYING = r"[\s\p{Cc}&&[^ ]]|  |^ | $"


def screen(texts: pl.Series, *, max_chars: int, min_chars: int | None, max_control_share: float) -> pl.Series:
    """Why each text is not a query: a reason of ``REASONS``, null for a query.

    Whether anything is visible is not asked here: the normal form says it.

    Args:
        texts: Raw texts without nulls.
        max_chars: Longest query in code points.
        min_chars: Shortest one, white space around it not counted; None for no limit.
        max_control_share: Largest share of control characters (other than tab and line ends) and of U+FFFD.

    >>> screen(pl.Series(["关灯", "a\\x00b"]), max_chars=9, min_chars=None, max_control_share=0.1).to_list()
    [None, 'control_characters']
    """
    t, bytes_, chars = pl.col("t"), pl.col("t").str.len_bytes(), pl.col("t").str.len_chars()
    # One cheap look spares nearly all texts the closer one.
    suspicious = (
        (bytes_ > max_chars)
        | ((bytes_ >= _SHORTEST_BLOB) & ~t.str.contains(" ", literal=True))
        | t.str.contains(";base64,", literal=True)
        | t.str.contains(_CONTROL)
    )
    if min_chars is not None:
        suspicious |= t.str.strip_chars().str.len_chars() < min_chars
    frame = texts.to_frame("t")
    rows = frame.select(suspicious).to_series().arg_true()
    mixed = t.str.contains("[0-9]") & t.str.contains("[a-z]") & t.str.contains("[A-Z]")
    undecoded = t.str.count_matches(r"\x{FFFD}") / chars >= _MOSTLY
    control = t.str.count_matches(_CONTROL) / chars > max_control_share
    checks = {
        "binary": t.str.contains(_DATA_URI) | (t.str.contains(_BLOB) & mixed) | undecoded,
        "control_characters": control | t.str.contains("\x00", literal=True),
        "too_long": chars > max_chars,
        "too_short": pl.lit(False) if min_chars is None else t.str.strip_chars().str.len_chars() < min_chars,
    }
    reason = pl.coalesce([pl.when(check).then(pl.lit(name)) for name, check in checks.items()])
    reasons = pl.Series("reason", [None], dtype=pl.String).new_from_index(0, len(texts))
    return reasons.scatter(rows, frame[rows].select(reason.alias("reason")).to_series()) if len(rows) else reasons


def tidy(texts: pl.Series) -> pl.Series:
    """``texts`` on one line: runs of white space and control characters become one space, none at the ends."""
    odd = texts.str.contains(_NEEDS_TIDYING).arg_true()
    if not len(odd):
        return texts
    return texts.clone().scatter(odd, texts.gather(odd).str.replace_all(_BLANKS, " ").str.strip_chars())


def shown(texts: pl.Series, chars: int) -> pl.Series:
    """The first ``chars`` characters of refused texts, control characters as U+FFFD: fit for a terminal."""
    return texts.str.slice(0, chars).str.replace_all(r"\p{Cc}", "\ufffd")
