"""Time stamps of any usual kind to UTC microseconds.

Naive stamps are taken as UTC. What cannot be read becomes null; callers count it.
"""

from __future__ import annotations

import polars as pl

__all__ = ["NO_FIRST", "NO_LAST", "is_time_type", "to_utc"]

NO_FIRST = 2**63 - 1
"""Stands for "no time stamp" where minima are taken over int64 microseconds."""
NO_LAST = -(2**63)
"""Stands for "no time stamp" where maxima are taken over int64 microseconds."""

# Year 9999: beyond it no calendar library can show a stamp.
_END_US = 253_402_300_800_000_000
_SMALLEST_EPOCH = 100_000_000  # 1973 in seconds; below lie counters and dates written as numbers
_UTC = pl.Datetime("us")


def is_time_type(dtype: pl.DataType) -> bool:
    """Whether :func:`to_utc` reads columns of this type."""
    return isinstance(dtype, pl.Datetime | pl.Date | pl.String | pl.Null | pl.Categorical) or dtype.is_numeric()


def to_utc(times: pl.Series) -> pl.Series:
    """``times`` as ``Datetime("us")`` in UTC without zone; null where a stamp cannot be read.

    Args:
        times: One of

            * datetimes of any unit and zone, or dates (midnight);
            * numbers: seconds, milliseconds, microseconds or nanoseconds since 1970, told apart by magnitude
              (below 1e11 seconds, below 1e14 milliseconds, below 1e17 microseconds, else nanoseconds; so seconds
              reach to the year 5138), or a date written as ``YYYYMMDD``; other numbers below 1e8 are no time stamps;
            * texts: ISO 8601 with ``-`` or ``/``, ``T`` or a space, optional seconds, fraction, offset; or a number.

    >>> to_utc(pl.Series(["2026-07-01T08:00:00+08:00", "1782864000", "soon"])).dt.to_string("%F %T").to_list()
    ['2026-07-01 00:00:00', '2026-07-01 00:00:00', None]
    """
    dtype = times.dtype
    if isinstance(dtype, pl.Null):
        return pl.Series(times.name, [None] * len(times), dtype=_UTC)
    if isinstance(dtype, pl.Datetime):
        return _from_datetime(times)
    if isinstance(dtype, pl.Date):
        return _from_datetime(times.cast(pl.Datetime("ms")))
    if dtype.is_numeric():
        return _from_number(times)
    return _from_text(times.cast(pl.String))


def _in_range(micros: pl.Series) -> pl.Series:
    """Int128 microseconds to datetimes; null outside the years 1 to 9999."""
    t = pl.col("t")
    inside = (t >= -62_135_596_800_000_000) & (t < _END_US)
    return micros.to_frame("t").select(pl.when(inside).then(t).cast(pl.Int64).cast(_UTC)).to_series()


def _from_datetime(times: pl.Series) -> pl.Series:
    assert isinstance(times.dtype, pl.Datetime)
    # Physical values are UTC whatever the zone. Widened before scaling: far-off milliseconds would wrap around.
    ticks = pl.col("t").cast(pl.Int64).cast(pl.Int128)
    scaled = {"ms": ticks * 1000, "us": ticks, "ns": ticks // 1000}[times.dtype.time_unit]
    return _in_range(times.to_frame("t").select(scaled).to_series())


def _from_number(numbers: pl.Series) -> pl.Series:
    t = pl.col("t")
    if numbers.dtype.is_integer():
        frame = numbers.cast(pl.Int128).to_frame("t")
    else:
        frame = numbers.cast(pl.Float64).to_frame("t").select(pl.when(t.is_finite() & (t.abs() < 1e20)).then(t))
    day = t.cast(pl.Int64, strict=False)
    is_day = (t >= 19_000_101) & (t <= 29_991_231) & (t == day)
    frame = frame.with_columns(
        seconds=pl.when(t >= _SMALLEST_EPOCH).then(
            pl.when(t < 1e11)
            .then(t * 1_000_000)
            .when(t < 1e14)
            .then(t * 1_000)
            .when(t < 1e17)
            .then(t)
            .otherwise(t // 1_000)
        ),
        day=pl.when(is_day).then(day.cast(pl.String)),
    )
    seconds = frame["seconds"] if numbers.dtype.is_integer() else frame["seconds"].round(0)
    stamps = _in_range(seconds.cast(pl.Int128))
    if frame["day"].null_count() == len(frame):
        return stamps
    days = frame["day"].str.to_datetime("%Y%m%d", time_unit="us", strict=False)
    return pl.select(pl.coalesce(days, stamps)).to_series()


def _from_text(texts: pl.Series) -> pl.Series:
    frame = texts.to_frame("t").select(pl.col("t").str.strip_chars())
    t = pl.col("t")
    # The forms nearly every log has, tried first: the general way is several times slower.
    simple = t.str.strip_suffix("Z").str.replace("T", " ", literal=True)
    plain = frame.select(simple.str.to_datetime("%Y-%m-%d %H:%M:%S%.f", time_unit="us", strict=False)).to_series()
    left = plain.is_null() & frame["t"].is_not_null()
    if not left.any():
        return plain
    rest = frame.filter(left)
    offset = r"(?i)(\d[ ]?)(?:Z|UTC|GMT)$"
    zone = r"(:\d{2}(?:[.,]\d+)?|\d{2}[ T]\d{4,6}(?:[.,]\d+)?) ?([+\-−])(\d{2}):?(\d{2})?$"
    sign = pl.when(t.str.extract(zone, 2) == "+").then(1).otherwise(-1)
    minutes = t.str.extract(zone, 3).cast(pl.Int64) * 60 + t.str.extract(zone, 4).cast(pl.Int64).fill_null(0)
    bare = (
        t.str.replace(offset, "$1")
        .str.replace(zone, "$1")
        .str.strip_chars()
        .str.replace(r"^(\d{4})/(\d{1,2})/(\d{1,2})", "$1-$2-$3")
        .str.replace(r"^(\d{8}|\d{4}-\d{1,2}-\d{1,2})[Tt ]\s*", "$1 ")
        .str.replace(r"(:\d{2}),(\d+)$", "$1.$2")
    )
    formats = ("%Y-%m-%d %H:%M:%S%.f", "%Y-%m-%d %H:%M", "%Y-%m-%d", "%Y%m%d %H%M%S%.f", "%Y%m%d %H%M")
    parsed = [bare.str.to_datetime(form, time_unit="us", strict=False) for form in formats]
    shift = pl.duration(minutes=(sign * minutes).fill_null(0), time_unit="us")
    found = rest.select((pl.coalesce(parsed) - shift).cast(_UTC)).to_series()
    number = rest.select(pl.when(t.str.contains(r"^\d{8,19}$")).then(t).cast(pl.Int64, strict=False)).to_series()
    fraction = rest.select(pl.when(t.str.contains(r"^\d{9,11}\.\d+$")).then(t).cast(pl.Float64)).to_series()
    both = pl.select(pl.coalesce(found, _from_number(number), _from_number(fraction))).to_series()
    return plain.scatter(left.arg_true(), both)
