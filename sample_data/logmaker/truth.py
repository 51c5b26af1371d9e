"""The hidden truth of drawn rows: what each was meant to be, and which rows are the same query."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass

import numpy as np
import polars as pl
import pyarrow as pa

from logmaker.frames import Field, Wording
from logmaker.sampler import Drawn, Family, Piece, label_hash, mix
from logmaker.vocabulary import Slot

__all__ = ["Span", "dense", "locate", "skeleton", "truth_frame"]

# Words that carry nothing: two wordings that differ only in these are the same words up to noise. A command to search
# carries nothing where it stands first.
FILLERS_ZH = re.compile("请问|麻烦你?|请|帮我|帮忙|给我|我想问?|我要|一下|[的了吗呢吧啊呀嗯呃哦]")
FILLERS_EN = re.compile(r"\b(please|can you|could you|would you|i want to|i'd like to|the|an?|me|um|uh|thanks)\b")
FIRST_ZH = re.compile("^(?:找[家个]?|查[找询]?|搜索?|从)")
FIRST_EN = re.compile(r"^\s*(?:find|search|show|look up)\b")
BETWEEN = re.compile(r"[\W_]+")
HASHED = ("base", "duplicate_group", "paraphrase_group")


@dataclass(frozen=True)
class Span:
    """A constraint: dimension, canonical words, words as said, and their place (None where noise broke them)."""

    dimension: str
    value: str
    text: str
    start: int | None = None
    end: int | None = None


def skeleton(text: str, lang: str) -> str:
    """``text`` without case, width, punctuation, blanks and the words that carry nothing; never empty if visible."""
    text = unicodedata.normalize("NFKC", text).casefold()
    if lang == "zh":
        bare = FIRST_ZH.sub("", BETWEEN.sub("", FILLERS_ZH.sub("", text)))
    else:
        bare = FIRST_EN.sub("", FILLERS_EN.sub(" ", text))
    joint = "" if lang == "zh" else " "
    return BETWEEN.sub(joint, bare).strip() or BETWEEN.sub(joint, text).strip() or text


def truth_frame(family: Family, drawn: Drawn, file: str) -> pl.DataFrame:
    """One row per drawn row; ids are 64-bit hashes here, :func:`dense` numbers them."""
    n = len(drawn.base)
    texts = drawn.texts.to_pylist()
    wording = np.full(n, -1, np.int32)
    paraphrase = np.zeros(n, np.uint64)
    skeletons: list[str | None] = [None] * n
    constraints: list[list[Span]] = [[] for _ in range(n)]
    for piece in drawn.pieces:
        said, slots = family.wordings[piece.wording], family.slots[piece.wording]
        wording[piece.rows] = piece.wording
        paraphrase[piece.rows] = _paraphrase(said, slots, piece)
        marks = _marks(said, slots)
        masked = [p for p, f in enumerate(said.pieces) if isinstance(f, Field) and slots[f.draw].masked]
        values = _values(slots, piece)
        for i, row in enumerate(piece.rows.tolist()):
            skeletons[row] = skeleton(_impersonal(piece.parts[i], masked), said.lang)
            if marks:
                constraints[row] = locate(_spans(marks, piece.parts[i], [v[i] for v in values]), texts[row])
    distinct = (
        _labels(family, wording)
        .with_columns(
            base=pl.Series(drawn.base),
            duplicate_group=_text_hash(skeletons),
            paraphrase_group=pl.Series(paraphrase),
            noise=pl.Series([family.kinds[k] for k in drawn.kind.tolist()]),
            constraints=_constraint_series(constraints),
            broken=pl.Series([None] * drawn.n_sound + drawn.breakage, dtype=pl.String),
        )
        .with_columns(pl.when(pl.col("broken").is_null()).then(pl.col(*HASHED, "noise", "constraints")))
    )
    rows = distinct[drawn.variant]
    index = np.arange(rows.height, dtype=np.uint32)
    place = pl.DataFrame({"file": pl.repeat(file, rows.height, eager=True), "row": index})
    return pl.concat([place, rows], how="horizontal")


def dense(truth: pl.DataFrame) -> pl.DataFrame:
    """Number the bases and groups 0, 1, 2 ... in the order of their hashes."""
    return truth.with_columns((pl.col(name).rank("dense") - 1).cast(pl.UInt32) for name in HASHED)


def locate(spans: list[Span], text: str) -> list[Span]:
    """Find the words of the spans again in ``text``, in their order; without a place where noise broke them."""
    folded = _fold(text)
    found, at = [], 0
    for span in spans:
        start = folded.find(_fold(span.text), at)
        if start < 0:
            found.append(span)
            continue
        at = start + len(span.text)
        found.append(Span(span.dimension, span.value, text[start:at], start, at))
    return found


def _fold(text: str) -> str:
    """Lower case and normal width, code point by code point."""
    lower = text.lower()
    if lower.isascii() and len(lower) == len(text):
        return lower
    folded = [unicodedata.normalize("NFKC", char).lower() for char in text]
    return "".join(f if len(f) == 1 else char for f, char in zip(folded, text, strict=True))


def _marks(wording: Wording, slots: list[Slot]) -> list[tuple[str, int, int, int | None]]:
    """Constraints of a wording in its order: dimension, pieces, draw; a mark hides the slots inside it."""
    marks: list[tuple[str, int, int, int | None]] = [(d, a, b, None) for d, a, b in wording.marks]
    inside = {p for _, a, b in wording.marks for p in range(a, b)}
    for p, field in enumerate(wording.pieces):
        if isinstance(field, Field) and p not in inside and not field.attribute:
            dimension = slots[field.draw].dimension
            if dimension:
                marks.append((dimension, p, p + 1, field.draw))
    return sorted(marks, key=lambda mark: mark[1])


def _values(slots: list[Slot], piece: Piece) -> list[list[str]]:
    """Per draw, the first name of every drawn word; the word itself for slots that are no constraints."""
    out = []
    for slot, words in zip(slots, piece.words, strict=True):
        first = np.searchsorted(slot.canon, slot.canon[words]) if slot.dimension else words
        out.append(slot.texts[first].tolist())
    return out


def _spans(marks: list[tuple[str, int, int, int | None]], parts: tuple[str, ...], values: list[str]) -> list[Span]:
    spans = []
    for dimension, a, b, draw in marks:
        text = "".join(parts[a:b]).removesuffix("的")
        spans.append(Span(dimension, text if draw is None else values[draw].removesuffix("的"), text))
    return spans


def _impersonal(parts: tuple[str, ...], masked: list[int]) -> str:
    """The clean text with personal data blotted out, so that two numbers make one query."""
    if not masked:
        return "".join(parts)
    return "".join("[data]" if p in masked else part for p, part in enumerate(parts))


def _paraphrase(wording: Wording, slots: list[Slot], piece: Piece) -> np.ndarray:
    """Hash of frame, sense, language and the things named, whatever they are called and in whatever order."""
    out = np.full(len(piece.rows), label_hash(f"{wording.frame.name}|{wording.sense}|{wording.lang}"))
    for d in sorted(range(len(slots)), key=lambda d: wording.draws[d]):
        name, which = wording.draws[d]
        canon = np.zeros(len(out), np.uint64) if slots[d].masked else slots[d].canon[piece.words[d]].astype(np.uint64)
        out = mix(out ^ mix(canon + label_hash(f"{name} {which}")))
    return out


def _labels(family: Family, wording: np.ndarray) -> pl.DataFrame:
    """Labels of wordings, one row per entry of ``wording``; null for -1."""
    frames = [w.frame for w in family.wordings]
    table = pl.DataFrame(
        {
            "frame": pl.Series([f.name for f in frames], dtype=pl.String),
            "lang": pl.Series([w.lang for w in family.wordings], dtype=pl.String),
            "leaf": pl.Series([f.leaf for f in frames], dtype=pl.String),
            "secondary": pl.Series([list(f.secondary) for f in frames], dtype=pl.List(pl.String)),
            "difficulty_min": pl.Series([f.difficulty[0] for f in frames], dtype=pl.Int8),
            "difficulty_max": pl.Series([f.difficulty[1] for f in frames], dtype=pl.Int8),
            "reason": pl.Series([f.reason for f in frames], dtype=pl.String),
            "personal_data": pl.Series(
                [sorted({s.masked for s in slots if s.masked}) for slots in family.slots], dtype=pl.List(pl.String)
            ),
        }
    )
    index = pl.Series("index", wording).cast(pl.Int64)
    return table.select(pl.all().gather(index.replace(-1, None)))


def _constraint_series(rows: list[list[Span]]) -> pl.Series:
    flat = [span for row in rows for span in row]
    struct = pa.StructArray.from_arrays(
        [
            pa.array([span.dimension for span in flat], pa.string()),
            pa.array([span.value if span.value != span.text else None for span in flat], pa.string()),
            pa.array([span.text for span in flat], pa.string()),
            pa.array([span.start for span in flat], pa.int16()),
            pa.array([span.end for span in flat], pa.int16()),
        ],
        ["dimension", "value", "text", "start", "end"],
    )
    offsets = np.concatenate([[0], np.cumsum([len(row) for row in rows])]).astype(np.int32)
    return pl.Series(pl.from_arrow(pa.ListArray.from_arrays(pa.array(offsets), struct)))


def _text_hash(texts: list[str | None]) -> pl.Series:
    import polars_hash as plh

    frame = pl.DataFrame({"t": pl.Series(texts, dtype=pl.String)})
    return frame.select(plh.col("t").nchash.xxh3_64()).to_series().cast(pl.UInt64)
