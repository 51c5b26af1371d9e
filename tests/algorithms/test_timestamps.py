from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from curation.algorithms.timestamps import is_time_type, to_utc

MOMENT = datetime(2026, 7, 1, 8, 5, 9, 250_000)
SECONDS = int(MOMENT.replace(tzinfo=UTC).timestamp())


@pytest.mark.parametrize(
    "text",
    [
        "2026-07-01 08:05:09.25",
        "2026-07-01T08:05:09.250Z",
        "2026-07-01T08:05:09,250000000Z",
        "2026/7/1 08:05:09.25",
        "2026-07-01T10:05:09.25+02:00",
        "2026-07-01 04:35:09.25 -0330",
        "2026-07-01t08:05:09.25z",
        "20260701T080509.25Z",
        " 2026-07-01 08:05:09.25 UTC ",
        f"{SECONDS}.25",
        f"{SECONDS}250",
    ],
)
def test_texts(text):
    assert to_utc(pl.Series([text])).to_list() == [MOMENT]


def test_texts_without_seconds_or_time():
    stamps = to_utc(pl.Series(["2026-07-01 08:05", "2026-07-01", "2026/07/01", "20260701"])).to_list()
    assert stamps == [datetime(2026, 7, 1, 8, 5)] + [datetime(2026, 7, 1)] * 3


def test_what_is_no_time_stamp_is_null():
    texts = ["soon", "", "2026-13-01", "2026-02-30 10:00:00", "12", "20261301", "99999999999999999999", None]
    assert to_utc(pl.Series(texts)).null_count() == len(texts)
    assert to_utc(pl.Series([0, -5, 12, 99_999_999, 20261301, None])).null_count() == 6
    assert to_utc(pl.Series([float("nan"), float("inf"), 1e300, None])).null_count() == 4


def test_one_odd_row_does_not_change_its_neighbours():
    texts = ["2026-07-01 08:05:09.25", "soon", "1782864000"]
    alone = [to_utc(pl.Series([text]))[0] for text in texts]
    assert to_utc(pl.Series(texts)).to_list() == alone


@pytest.mark.parametrize(("unit", "factor"), [("s", 1), ("ms", 10**3), ("us", 10**6), ("ns", 10**9)])
def test_numbers_by_magnitude(unit, factor):
    whole = datetime.fromtimestamp(SECONDS, UTC).replace(tzinfo=None)
    assert to_utc(pl.Series([SECONDS * factor])).to_list() == [whole]
    assert to_utc(pl.Series([float(SECONDS * factor)])).to_list() == [whole]


def test_dates_written_as_numbers():
    assert to_utc(pl.Series([20260701], dtype=pl.Int32)).to_list() == [datetime(2026, 7, 1)]


def test_datetimes_of_any_unit_and_zone():
    for unit in ("ms", "us", "ns"):
        assert to_utc(pl.Series([MOMENT], dtype=pl.Datetime(unit))).to_list() == [MOMENT]
    there = MOMENT.replace(tzinfo=UTC).astimezone(timezone(timedelta(hours=8)))
    assert to_utc(pl.Series([there]).dt.convert_time_zone("Asia/Shanghai")).to_list() == [MOMENT]
    assert to_utc(pl.Series([date(2026, 7, 1)])).to_list() == [datetime(2026, 7, 1)]
    assert to_utc(pl.Series([None])).to_list() == [None]


def test_far_off_datetimes_are_null_instead_of_wrapping_around():
    far = pl.Series([2**62, -(2**62)]).cast(pl.Datetime("ms"))
    assert to_utc(far).to_list() == [None, None]


def test_which_types_hold_time_stamps():
    assert is_time_type(pl.Datetime("us")) and is_time_type(pl.String()) and is_time_type(pl.Int64())
    assert not is_time_type(pl.Boolean()) and not is_time_type(pl.List(pl.Int64))


@settings(deadline=None)
@given(st.datetimes(datetime(1973, 3, 4), datetime(9999, 12, 31)), st.integers(-12 * 60, 14 * 60))
def test_iso_texts_as_the_standard_library_reads_them(moment, minutes):
    there = moment.replace(tzinfo=timezone(timedelta(minutes=minutes)))
    assert to_utc(pl.Series([there.isoformat(), moment.isoformat()])).to_list() == [
        moment - timedelta(minutes=minutes),
        moment,
    ]


def test_decimal_text_keeps_its_microseconds():
    assert to_utc(pl.Series([str(Decimal(SECONDS) + Decimal("0.25"))])).to_list() == [MOMENT]
