"""The report as a file: what it must hold for any run is tested through the command in tests/cli."""

from __future__ import annotations

from curation.report.page import _bars, _short


def test_long_names_keep_their_end():
    name = "planning_and_decision.itinerary_planning.short_trip_itinerary|"
    assert _short(name).endswith("short_trip_itinerary")
    assert len(_short(name)) == 36
    assert _short("other|") == "other"


def test_bars_are_as_long_as_their_share_and_escape_text():
    svg = str(_bars([("<a>", [("kept", 1.0), ("lost", 1.0)], 2.0, "x & y")], scale=2.0))
    assert "&lt;a&gt;" in svg and "x &amp; y" in svg
    assert svg.count('width="270.0"') == 2  # each half of the 540 units that the longest bar may take
    assert 'class="target"' in svg


def test_nothing_to_show_is_still_a_picture():
    assert "<svg" in str(_bars([], 0))
