"""What a person reads while a run goes on: what the library logs stands among the lines."""

from __future__ import annotations

import io
import logging
from types import SimpleNamespace

import pytest
from rich.console import Console

from curation.cli import progress
from curation.cli.progress import Bars, observer
from curation.engine.step import Step

LOGGER = logging.getLogger("curation.llm")


@pytest.mark.parametrize("quiet", [False, True])
def test_what_is_logged_is_a_line_unless_the_run_is_quiet(capsys, quiet):
    shown = observer(quiet)
    LOGGER.warning("waiting for %s", "it")
    LOGGER.debug("not for a person")
    shown.close()
    LOGGER.info("too late")
    out, err = capsys.readouterr()
    assert out == ("" if quiet else "llm: waiting for it\n") and not err


def test_what_is_logged_stands_above_the_bar(monkeypatch):
    screen = Console(file=io.StringIO(), force_terminal=True, width=60)
    monkeypatch.setattr(progress, "console", screen)
    shown = Bars()
    LOGGER.warning("waiting for [the] endpoint, " + "long " * 20)
    shown.close()
    assert "llm: waiting for [the] endpoint, " + "long " * 19 in screen.file.getvalue()


def test_the_loggers_are_left_as_they_were():
    logger = logging.getLogger("curation")
    before = logger.level, list(logger.handlers)
    observer().close()
    assert (logger.level, list(logger.handlers)) == before


@pytest.mark.parametrize("total", [0, 7])
def test_the_clock_goes_on_when_all_is_counted_but_the_stage_has_not_ended(monkeypatch, total):
    monkeypatch.setattr(progress, "console", Console(file=io.StringIO(), force_terminal=True, width=100))
    shown = Bars()
    stage = SimpleNamespace(name="annotate", title="Label")
    shown.started(Step(stage, "stale", ["never built"]))
    shown.progress("annotate", total, total, "asking")
    (task,) = shown._progress.tasks
    shown.close()
    assert not task.finished and task.fields["count"] == f"{total}/{total}"
