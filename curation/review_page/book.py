"""The book of a review: the journal, and the files that people and commands read, kept in step.

Decisions go to the journal at once. When nothing was decided for a moment they are folded into the files; what a
person or a command wrote there meanwhile is taken in first, as a step that can be undone like any other. A file with
a mistake in it is left alone, and the mistake is kept for the page to show.
"""

from __future__ import annotations

import fcntl
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from curation.errors import CurationError
from curation.review_page.journal import Journal, Step
from curation.taxonomy.entries import review_lock

__all__ = ["Book", "ReviewFile"]

JOURNAL = "journal.jsonl"
_QUIET_SECONDS = 1.0
_Value = dict[str, Any]


class ReviewFile(Protocol):
    """A file that values whose keys begin with ``prefix`` are folded into."""

    path: Path
    prefix: str

    def stamp(self) -> Any:
        """Cheap to ask, and another whenever the file was written."""

    def digest(self) -> str | None:
        """SHA-256 of its bytes; None if it is not there."""

    def read(self, base: Mapping[str, _Value]) -> dict[str, _Value]:
        """All values in it; ``base`` holds those of the last time. Raises CurationError naming the line."""

    def write(self, base: Mapping[str, _Value], values: Mapping[str, _Value]) -> None:
        """Bring it from ``base`` to ``values``, all at once."""


class Book:
    """All decisions of a review.

    Args:
        review: The directory of the review's files.
        files: What decisions are folded into.

    Attributes:
        lock: Held by whoever looks at several things that must belong together.
        wrong: The mistake in a file that keeps all from being folded, as long as it is there.
        stuck: Why folding failed the last time; it is tried again.

    Raises:
        CurationError: Another page has the review open, or the journal is damaged.
    """

    def __init__(self, review: Path, files: Sequence[ReviewFile]) -> None:
        self.lock = threading.RLock()
        self.wrong: CurationError | None = None
        self.stuck: CurationError | None = None
        self._review, self._files = review, files
        self._about: str | None = None
        self._known: Callable[[str], bool] = lambda _: False
        self._seen: Any = None
        self._changed = time.monotonic()
        self._held = _hold(review)
        try:
            self._journal = Journal(review / JOURNAL)
        except BaseException:
            self._held.close()
            raise

    def begin(self, about: str, known: Callable[[str], bool]) -> None:
        """Go on with the review of what ``about`` names, or begin anew if the journal is of something else.

        Then the files say what stands; of what was not folded into them yet, the values of ``known`` keys stay.
        """
        with self.lock:
            self._about, self._known, self._seen = about, known, None
            self.pull()

    def close(self) -> None:
        """Fold what stands, and let go of the review."""
        try:
            self.fold()
        finally:
            self._held.close()

    @property
    def values(self) -> dict[str, _Value]:
        """All values that stand, by key, not to be changed; none as long as a wrong file keeps it from beginning."""
        return self._journal.history.values if self._journal.about == self._about else {}

    @property
    def titles(self) -> tuple[str | None, str | None]:
        """What undo and redo would do."""
        done, undone = self._journal.history.done, self._journal.history.undone
        return done[-1].title if done else None, undone[-1].title if undone else None

    def do(self, after: Mapping[str, _Value | None], title: str) -> Step | None:
        """Set values (None takes one away) as one step, on the disk before it returns."""
        return self._move(lambda: self._journal.do(after, title))

    def undo(self) -> Step | None:
        """Take the last step back."""
        return self._move(self._journal.undo)

    def redo(self) -> Step | None:
        """Do the last undone step again."""
        return self._move(self._journal.redo)

    def _move(self, move: Callable[[], Step | None]) -> Step | None:
        with self.lock:
            if self._journal.about != self._about and self.wrong is not None:
                raise self.wrong  # what stands in the files is not known yet
            self._changed = time.monotonic()
            return move()

    # -- the files

    def fold_when_quiet(self) -> None:
        """Fold, unless something was decided a moment ago; what fails is kept as :attr:`trouble`."""
        if time.monotonic() - self._changed >= _QUIET_SECONDS:
            try:
                self.fold()
            except CurationError as error:
                self.stuck = error

    def fold(self) -> None:
        """Write what stands into the files, unless one has a mistake in it."""
        with self.lock:
            self.pull()
            if self.wrong is None and self.values != self._journal.base:
                with review_lock(self._review):
                    self.pull()
                    if self.wrong is None:
                        self._write()

    def _write(self) -> None:
        for file in self._files:
            file.write(self._journal.base, self.values)
        self._journal.note_fold({file.path.name: file.digest() for file in self._files})
        self._seen, self.stuck = [file.stamp() for file in self._files], None

    def settle(self) -> None:
        """Fold; raise what is wrong with a file."""
        with self.lock:
            self.fold()
            if self.wrong is not None:
                raise self.wrong

    def pull(self) -> None:
        """Take in what was written into the files by someone else."""
        with self.lock:
            stamps = [file.stamp() for file in self._files]
            if stamps == self._seen:
                return
            self._seen, self.wrong = stamps, None
            try:
                self._take_in()
            except CurationError as error:
                self.wrong = error

    def _take_in(self) -> None:
        digests = {file.path.name: file.digest() for file in self._files}
        if self._journal.about != self._about:
            self._start(digests)
            return
        base, edits = self._journal.base, dict[str, _Value | None]()
        changed = [f for f in self._files if digests[f.path.name] != self._journal.folded.get(f.path.name)]
        for file in changed:
            now = file.read(base)
            was = {key for key in base if key.startswith(file.prefix)}
            edits |= {key: now.get(key) for key in now.keys() | was if now.get(key) != base.get(key)}
        if changed:
            self.do(edits, "edits in " + " and ".join(file.path.name for file in changed))
            self._journal.note_read(digests, edits)

    def _start(self, digests: dict[str, str | None]) -> None:
        values: dict[str, _Value] = {}
        for file in self._files:
            values |= file.read({})
        now, base = self._journal.history.values, self._journal.base
        kept = {key: now.get(key) for key in now | base if now.get(key) != base.get(key) and self._known(key)}
        self._journal.begin(self._about or "", digests, values)
        if kept:
            self._journal.do(kept, "what the files did not hold yet")


def _hold(review: Path) -> Any:
    """A lock that the page keeps while it is open; commands change the files meanwhile, two pages would not agree."""
    try:
        review.mkdir(parents=True, exist_ok=True)
        stream = (review / ".page.lock").open("a", encoding="ascii")
    except OSError as error:
        raise CurationError(f"{review} cannot be written: {error.strerror}") from None
    try:
        fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        stream.close()
        raise CurationError(
            f"another review page of {review.parent} is open", "Go on there, or end it with Ctrl-C."
        ) from None
    return stream
