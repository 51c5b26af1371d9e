"""Files that people edit: replaced whole, whoever is killed or writes at the same time."""

from __future__ import annotations

import os
import signal
import threading

import pytest

from curation.errors import CurationError
from curation.taxonomy import entries
from curation.taxonomy.entries import replace_text, shown


def killed_while_writing(path, text):
    """Let a process die at the last moment before the file is replaced."""
    pid = os.fork()
    if pid == 0:
        entries.os.fsync = lambda _: os.kill(os.getpid(), signal.SIGKILL)
        replace_text(path, text)
    assert os.WIFSIGNALED(os.waitpid(pid, 0)[1])


def test_what_killed_writers_leave_is_gone_with_the_next_write(tmp_path):
    path = tmp_path / "versions.yaml"
    replace_text(path, "old")
    for _ in range(3):
        killed_while_writing(path, "a much longer text that is never whole")
    assert path.read_text() == "old"
    assert len(list(tmp_path.iterdir())) == 2  # not one for each of them
    replace_text(path, "new")
    assert [file.name for file in tmp_path.iterdir()] == ["versions.yaml"]
    assert path.read_text() == "new"


def test_writers_at_once_leave_one_whole_text(tmp_path):
    path = tmp_path / "decisions.yaml"
    texts = [f"{n}" * 50_000 for n in range(8)]

    def write(text):
        for _ in range(20):
            replace_text(path, text)
            assert path.read_text() in texts

    failed = []
    threads = [threading.Thread(target=_kept, args=(failed, write, text)) for text in texts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    assert [file.name for file in tmp_path.iterdir()] == ["decisions.yaml"]


def _kept(failed, work, *given):
    try:
        work(*given)
    except BaseException as error:
        failed.append(error)


def test_a_disk_that_is_full_leaves_the_old_text_and_nothing_else(tmp_path, monkeypatch):
    path = tmp_path / "versions.yaml"
    replace_text(path, "old")

    def full(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(entries.os, "fsync", full)
    with pytest.raises(CurationError, match=r"versions\.yaml cannot be written: No space left"):
        replace_text(path, "new")
    assert [file.read_text() for file in tmp_path.iterdir()] == ["old"]


def test_long_values_are_quoted_short():
    assert shown("a\u202eb\n") == r"'a\u202eb\n'"
    assert shown("x" * 10_000) == "'" + "x" * 58 + "…"
