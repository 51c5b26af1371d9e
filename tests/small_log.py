"""A small real log for tests of the whole path: a few hundred queries in two languages with every kind of trouble."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path

import polars as pl

PLACES_EN = [
    "the old harbour",
    "Maple Street",
    "the science museum",
    "Riverside Park",
    "the north station",
    "Lakeview",
]
PLACES_ZH = ["老码头", "枫林路", "科技馆", "滨河公园", "火车北站", "湖景广场"]
TEMPLATES = [
    ("navigate to {}", PLACES_EN),
    ("how do I get to {} by subway", PLACES_EN),
    ("find a quiet cafe near {} that is open late", PLACES_EN),
    ("is it going to rain at {} tomorrow", PLACES_EN),
    ("traffic on the way to {}", PLACES_EN),
    ("which is better for kids, {} or the zoo", PLACES_EN),
    ("plan a three day trip around {} for two people under 500 dollars", PLACES_EN),
    ("导航到{}", PLACES_ZH),
    ("从{}坐地铁去机场怎么走", PLACES_ZH),
    ("{}附近有没有便宜又好吃的火锅", PLACES_ZH),
    ("明天{}会下雨吗", PLACES_ZH),
    ("去{}的路上堵不堵", PLACES_ZH),
    ("{}几点开门", PLACES_ZH),
    ("帮我规划{}周边三天两晚的行程预算两千", PLACES_ZH),
]
ODD = [
    "hello",
    "你好呀",
    "turn up the volume",
    "把空调打开",
    "book me a table and pay for it",
    "call 13812345678 for me",
    "打电话给13987654321",
    "write to ada@example.org",
    "哈哈哈哈",
    "what is 17 times 23",
    "C++",
    "？？",
    "🍜",
    "G2 高速",
    "G3 高速",
    "",
    "   ",
    None,
    "\x00\x01\x02",
]


def rows(repeat: int = 3) -> pl.DataFrame:
    """Columns `query`, `ts`, `source`; the first templates are the more frequent."""
    texts: list[str | None] = []
    for number, (template, places) in enumerate(TEMPLATES):
        for rank, place in enumerate(places):
            text = template.format(place)
            texts += [text] * max(1, repeat * 3 // (number + rank + 1))
            texts += [text + ("。" if template[0] > "z" else "?"), text.upper()]
    texts += ODD * repeat
    start = datetime(2026, 7, 1)
    return pl.DataFrame(
        {
            "query": texts,
            "ts": [start + timedelta(minutes=7 * i) for i in range(len(texts))],
            "source": ["voice" if i % 3 else "typed" for i in range(len(texts))],
        }
    )


def write_log(directory: Path, files: int = 2, seed: int | None = None) -> Path:
    """Write the log as Parquet files, rows shuffled by ``seed``; returns the directory."""
    frame = rows()
    if seed is not None:
        frame = frame.sample(fraction=1.0, shuffle=True, seed=seed)
    directory.mkdir(parents=True, exist_ok=True)
    size = -(-frame.height // files)
    for number in range(files):
        frame.slice(number * size, size).write_parquet(directory / f"part-{number}.parquet")
    return directory


RECIPE = "log: {path: log, text: query, time: ts, source: source}\npool: {size: 60}\nseeds: {propose: 10}\n"


def write_workspace(directory: Path, recipe: str = RECIPE, **log: int) -> Path:
    """A workspace on the small log; returns the directory."""
    write_log(directory / "log", **log)
    (directory / "recipe.yaml").write_text(recipe, encoding="utf-8")
    return directory
