"""Script and language of short queries.

*Script*: every letter is put in its script by Unicode's own property; the prevailing one wins, a character of the
East Asian scripts counting as much as three letters (about a word each). Han text is ``Hans``, or ``Hant`` where it
has more characters of traditional writing only (in Big5 but not in GB 2312) than of simplified only; kana make it
``Jpan``.

*Language*: where the script has one language among the candidates, it is that one. Else naive Bayes over byte n-grams
decides, with the model of py3langid (142 languages; Lui and Baldwin 2012, "langid.py"), restricted to the candidates,
scored by a compiled kernel in whole numbers, so that the result is the same everywhere. The first candidate of a
script is preferred: short queries hold names of anywhere, so another one must be clearly better (``PREFERENCE``).

``und`` is said of text without letters, of a single Latin letter, and of Latin text when no candidate is written so.

Measured with the default candidates: right for 99.9 % and 100 % of 122,000 distinct English and Chinese turns of a
dialogue log, 98.8 % of the English ones under 16 bytes, 99.96 % of 18,000 assistant queries, 96 % of 130 short
queries in ten other Latin languages. ``PREFERENCE`` was chosen on these same queries, so they flatter it. Limits: a
Latin brand in a Chinese query outweighs it when it has more than three times as many letters; Japanese and Korean in
Han alone is ``zh``; names alone are the first candidate.
About 0.1 µs a query for the script and 0.04 µs a byte for the language of Latin text.
"""

from __future__ import annotations

from functools import lru_cache
from threading import Lock
from typing import Any, NamedTuple

import numpy as np
import polars as pl
import pyarrow as pa
from numba import njit

from curation.algorithms.parallel import run_chunks, spans
from curation.algorithms.scripts import SCRIPTS, languages_of

__all__ = ["detect"]

PREFERENCE = 8.0
"""By how much another language's log-probability must exceed that of the first candidate."""

_WIDE = ("Hani", "Hira", "Kana", "Hang", "Bopo")
_OUT = ("Zyyy", "Hans", "Hant", "Jpan", "Kore", *(code for code in SCRIPTS if code not in _WIDE))
_HANS, _HANT, _JPAN, _KORE = range(1, 5)
_LANGUAGE_SCRIPT = {"Hans": "Hani", "Hant": "Hani", "Jpan": "Hira", "Kore": "Hang"}
_LETTERS_A_WIDE_CHARACTER = 3
_TABLE_SIZE = 0x20000
_LONGEST = 255  # bytes looked at to tell the language
_ROWS_PER_CHUNK = 65_536
_SCALE, _GAIN_SCALE = 128, 64  # log-probabilities and gains as whole numbers whose sums stay below 2**31
_SIMPLIFIED, _TRADITIONAL = 1, 2
_LOADING = Lock()


class _Model(NamedTuple):
    moves: np.ndarray  # uint32: next state by row and byte
    rows: np.ndarray  # uint32: row of a state in `moves`
    features: np.ndarray  # int32: feature that a state completes, -1 for none
    weights: np.ndarray  # int32 (features, candidates)
    priors: np.ndarray  # int32 (candidates,)


@lru_cache(maxsize=1)
def _character_tables() -> tuple[np.ndarray, np.ndarray]:
    """(script of each code point below 0x20000 as 1 + its place in SCRIPTS, 0 for none; Han set it belongs to)."""
    codes = [code for code in range(_TABLE_SIZE) if not 0xD800 <= code < 0xE000]
    chars = pl.Series([chr(code) for code in codes])
    scripts = np.zeros(_TABLE_SIZE, np.uint8)
    for place, (name, _) in enumerate(SCRIPTS.values()):
        letters = chars.str.contains(rf"[\p{{{name}}}&&[\p{{L}}\p{{M}}\p{{Nl}}]]").to_numpy()
        scripts[np.array(codes)[letters]] = place + 1
    sets = np.zeros(_TABLE_SIZE, np.uint8)
    for code in range(0x4E00, 0xA000):
        simplified, traditional = _is_in(chr(code), "gb2312"), _is_in(chr(code), "big5")
        if simplified != traditional:
            sets[code] = _SIMPLIFIED if simplified else _TRADITIONAL
    return scripts, sets


def _is_in(char: str, encoding: str) -> bool:
    try:
        char.encode(encoding)
    except UnicodeEncodeError:
        return False
    return True


@lru_cache(maxsize=1)
def _identifier() -> Any:
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    return LanguageIdentifier.from_model_file(MODEL_FILE)


def _model(candidates: tuple[str, ...]) -> _Model:
    # One thread loads, the others wait: the model is large.
    with _LOADING:
        return _restricted(candidates)


@lru_cache(maxsize=16)
def _restricted(candidates: tuple[str, ...]) -> _Model:
    """The model restricted to ``candidates``; where it knows a language by several names, the likelier counts."""
    known = _identifier()
    columns = [[at for at, name in enumerate(known.nb_classes) if name == language] for language in candidates]
    assert all(columns), "every language of a script with several must be known to the model"
    first = np.array([column[0] for column in columns])
    weights = np.rint(known.nb_ptc[:, first].astype(np.float64) * _SCALE).astype(np.int32)
    priors = np.rint(known.nb_pc[first].astype(np.float64) * _SCALE * _GAIN_SCALE).astype(np.int32)
    return _Model(
        np.frombuffer(known.tk_nextmove, np.dtype(known.tk_nextmove.typecode)),
        np.frombuffer(known.tk_row, np.dtype(known.tk_row.typecode)),
        np.array(known.tk_output, np.int32),
        weights,
        priors,
    )


@njit(nogil=True, cache=True)
def _scripts_of(data, starts, first, last, scripts, sets, wide, narrow, out, letters):
    """Prevailing script (place in ``_OUT``) and number of its letters, for rows ``first .. last``.

    ``wide`` are the places of the East Asian scripts, ``narrow[place]`` is where another script stands in ``_OUT``.
    """
    han, hira, kana, hangul, _ = wide
    counts = np.zeros(narrow.size, np.int64)
    for row in range(first, last):
        counts[:] = 0
        simplified, traditional = 0, 0
        at, end = starts[row], starts[row + 1]
        while at < end:
            lead = np.int64(data[at])
            if lead < 0x80:
                code, at = lead, at + 1
            elif lead < 0xE0:
                code, at = (lead & 31) << 6 | np.int64(data[at + 1]) & 63, at + 2
            elif lead < 0xF0:
                code = (lead & 15) << 12 | (np.int64(data[at + 1]) & 63) << 6 | np.int64(data[at + 2]) & 63
                at += 3
            else:
                code = (lead & 7) << 18 | (np.int64(data[at + 1]) & 63) << 12
                at += 4
            if code < _TABLE_SIZE:
                counts[scripts[code]] += 1
                simplified += sets[code] == _SIMPLIFIED
                traditional += sets[code] == _TRADITIONAL
            elif code < 0x40000:
                counts[han] += 1
        wide_count = 0
        for place in wide:
            wide_count += counts[place]
        best, most = 0, _LETTERS_A_WIDE_CHARACTER * wide_count
        for place in range(1, narrow.size):
            if counts[place] > most and narrow[place] > 0:
                best, most = narrow[place], counts[place]
        letters[row] = most
        if best == 0 and wide_count > 0:
            letters[row] = wide_count
            kanas = counts[hira] + counts[kana]
            if 2 * counts[hangul] >= wide_count:
                best = _KORE
            elif kanas > 0 and not (kanas == 1 and simplified > 0):
                # A lone "の" in simplified Chinese is decoration.
                best = _JPAN
            else:
                best = _HANT if traditional > simplified else _HANS
        out[row] = best


@njit(nogil=True, cache=True)
def _classify(data, starts, rows, first, last, moves, bases, features, weights, priors, gains, preference, out):
    """The likeliest candidate of ``rows[first .. last]``.

    A feature found n times weighs log(1 + n); ``gains[n]`` is what its next occurrence adds.
    """
    candidates = priors.size
    counts = np.zeros(weights.shape[0], np.uint8)
    found = np.empty(_LONGEST, np.int32)
    scores = np.empty(candidates, np.int32)
    for at in range(first, last):
        begin = starts[rows[at]]
        end = min(starts[rows[at] + 1], begin + _LONGEST)
        # Shouting hides the language: the model has seen little of it.
        shouted = False
        for position in range(begin, end):
            if 97 <= data[position] <= 122:
                shouted = False
                break
            shouted |= 65 <= data[position] <= 90
        state, size = 0, 0
        for position in range(begin, end):
            byte = np.int64(data[position])
            if shouted and 65 <= byte <= 90:
                byte += 32
            state = moves[np.int64(bases[state]) * 256 + byte]
            if features[state] >= 0:
                found[size] = features[state]
                size += 1
        scores[:] = priors
        for feature in found[:size]:
            gain = gains[counts[feature]]
            counts[feature] += 1
            for candidate in range(candidates):
                scores[candidate] += gain * weights[feature, candidate]
        for feature in found[:size]:
            counts[feature] = 0
        best = 0
        for candidate in range(1, candidates):
            margin = preference if best == 0 else 0
            if scores[candidate] > scores[best] + margin:
                best = candidate
        out[at] = best


def detect(texts: pl.Series, languages: tuple[str, ...], workers: int | None = None) -> tuple[pl.Series, pl.Series]:
    """Language (ISO 639-1 or ``und``) and script (ISO 15924, ``Zyyy`` without letters) of each text.

    Args:
        texts: The queries, without nulls.
        languages: Candidates; the first of each script is preferred.
        workers: Threads; they do not change the result.
    """
    rows = len(texts)
    if rows == 0:
        return texts.clear(), texts.clear()
    array = texts.to_arrow().cast(pa.large_string())
    _, starts_buffer, data_buffer = array.buffers()
    starts = np.frombuffer(starts_buffer, np.int64)[array.offset : array.offset + rows + 1]
    data = np.frombuffer(data_buffer, np.uint8) if data_buffer is not None else np.zeros(0, np.uint8)
    out, letters = np.zeros(rows, np.int64), np.zeros(rows, np.int64)
    with _LOADING:
        scripts, sets = _character_tables()
    places = {code: place + 1 for place, code in enumerate(SCRIPTS)}
    wide = np.array([places[code] for code in _WIDE])
    narrow = np.array([0, *(0 if code in _WIDE else _OUT.index(code) for code in SCRIPTS)])

    def find_scripts(first: int, last: int) -> None:
        _scripts_of(data, starts, first, last, scripts, sets, wide, narrow, out, letters)

    run_chunks(find_scripts, spans(rows, _ROWS_PER_CHUNK), workers)
    names = ["und"]
    answer = np.zeros(rows, np.int64)
    for place, code in enumerate(_OUT):
        if code == "Zyyy":
            continue
        chosen = np.flatnonzero((out == place) & (letters > (code == "Latn")))
        candidates = languages_of(_LANGUAGE_SCRIPT.get(code, code), languages)
        if len(chosen) and candidates:
            best = _best(data, starts, chosen, candidates, workers) if len(candidates) > 1 else 0
            answer[chosen] = len(names) + best
            names += candidates
    return _named(answer, names), _named(out, list(_OUT))


def _best(
    data: np.ndarray, starts: np.ndarray, rows: np.ndarray, candidates: tuple[str, ...], workers: int | None
) -> np.ndarray:
    model = _model(candidates)
    out = np.zeros(len(rows), np.int64)
    gains = np.diff(np.rint(np.log1p(np.arange(_LONGEST + 2)) * _GAIN_SCALE)).astype(np.int32)
    preference = int(PREFERENCE * _SCALE * _GAIN_SCALE)

    def classify(first: int, last: int) -> None:
        _classify(data, starts, rows, first, last, *model, gains, preference, out)

    run_chunks(classify, spans(len(rows), _ROWS_PER_CHUNK), workers)
    return out


def _named(places: np.ndarray, names: list[str]) -> pl.Series:
    return pl.Series(names, dtype=pl.String).gather(places)
