"""What endpoints said and what it cost, on disk: shared by all stages, whole after a kill, open to many processes.

A sqlite database in WAL mode. It remembers *calls*, not judgements: what an answer is worth is decided anew each
time, so a mended reader or one repair more needs no call that was already made. A call is *claimed* before it is
made, together with the most it may cost; so two processes do not make the same call, and the budget is never exceeded
by what is under way. A claim whose owner has died is given up, and what it may have cost counts as lost.
"""

from __future__ import annotations

import contextlib
import fcntl
import random
import sqlite3
import time
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import astuple, dataclass
from enum import Enum
from pathlib import Path
from typing import IO, Any

from curation.errors import CurationError
from curation.teachers.llm.outcome import Reply

__all__ = ["Cache", "Claim", "Money", "Owed"]

_FORMAT = 1
_TABLES = """
CREATE TABLE IF NOT EXISTS calls (
    key TEXT PRIMARY KEY, text TEXT, finish TEXT NOT NULL, prompt_tokens INTEGER NOT NULL,
    completion_tokens INTEGER NOT NULL, cost REAL NOT NULL, latency REAL NOT NULL,
    currency TEXT NOT NULL, model TEXT NOT NULL, stage TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS claims (
    key TEXT PRIMARY KEY, owner TEXT NOT NULL, bound REAL NOT NULL, currency TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS money (
    currency TEXT PRIMARY KEY, spent REAL NOT NULL DEFAULT 0, lost REAL NOT NULL DEFAULT 0
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS batches (
    token TEXT PRIMARY KEY, address TEXT NOT NULL, batch_id TEXT, owner TEXT NOT NULL
) WITHOUT ROWID;
"""
_BATCH = "batch:"
# Seconds to wait for other processes that use the database, and what sqlite calls their being at it.
_PATIENCE = 60.0
_PASSING = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL)


class Claim(Enum):
    """What became of the wish to make a call."""

    GRANTED = "make it"
    TAKEN = "another process is making it"
    WAIT = "the budget may have room when other calls have ended"
    BROKE = "the budget has no room"


@dataclass(frozen=True)
class Money:
    """Money of one currency: spent on answers, lost (calls that may have been billed but gave none), claimed."""

    spent: float
    lost: float
    claimed: float


@dataclass(frozen=True)
class Owed:
    """A batch whose answers are outstanding: our token for it, the endpoint's address, its id once that is known."""

    token: str
    address: str
    batch_id: str | None


class Cache:
    """The request cache in a directory. One object belongs to one thread at a time.

    Args:
        directory: Where it lies; made if it is not there.

    Raises:
        CurationError: It cannot be written, is damaged, or of a later version.
    """

    def __init__(self, directory: Path) -> None:
        self._path = directory / "llm.sqlite"
        self._owners = directory / "llm.owners"
        self.owner = uuid.uuid4().hex
        self._lock: IO[str] | None = None
        try:
            directory.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise CurationError(f"the request cache {directory} cannot be written: {error.strerror}") from None
        with self._told():
            self._db, version = self._open()
        if version > _FORMAT:
            self.close()
            raise CurationError(
                f"the request cache {self._path} was written by a later version of curation", "Install that version."
            )

    @staticmethod
    def exists(directory: Path) -> bool:
        """Whether there is a cache in a directory."""
        return (directory / "llm.sqlite").is_file()

    def __enter__(self) -> Cache:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Close it; claims still held are settled by whoever comes next."""
        self._db.close()
        if self._lock is not None:
            self._lock.close()
            (self._owners / self.owner).unlink(missing_ok=True)
            self._lock = None

    # -- answers

    def get(self, key: str) -> Reply | None:
        """What was said in a call; None if it was not made."""
        with self._told():
            row = self._db.execute(
                "SELECT text, finish, prompt_tokens, completion_tokens, cost, latency FROM calls WHERE key = ?",
                (key,),
            ).fetchone()
        return None if row is None else Reply(*row)

    def put(
        self, key: str, reply: Reply, *, stage: str, model: str, currency: str, owner: str | None = None
    ) -> Reply:
        """Keep what was said in a call and end its claim (``owner`` if it is not this object's own).

        Returns:
            What the cache holds now: the first answer, where two came.
        """
        with self._told(), self._writing():
            # Money first and always: an answer that comes twice was paid twice.
            self._spend(currency, spent=reply.cost)
            self._db.execute("DELETE FROM claims WHERE key = ? AND owner = ?", (key, owner or self.owner))
            self._db.execute(
                "INSERT OR IGNORE INTO calls VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (key, *astuple(reply), currency, model, stage),
            )
        kept = self.get(key)
        assert kept is not None
        return kept

    def usual(self, model: str) -> tuple[float, float] | None:
        """Mean tokens received and mean seconds of the calls a model answered; None if there is none."""
        with self._told():
            row = self._db.execute(
                "SELECT avg(completion_tokens), avg(latency) FROM calls WHERE model = ?", (model,)
            ).fetchone()
        return None if row[0] is None else (row[0], row[1])

    # -- claims and money

    def claim(self, key: str, bound: float, *, currency: str, budget: float | None) -> Claim:
        """Claim a call that may cost up to ``bound``; see :class:`Claim`."""
        return self.claim_all([(key, bound)], self.owner, currency=currency, budget=budget)[0]

    def claim_all(
        self, wanted: Sequence[tuple[str, float]], owner: str, *, currency: str, budget: float | None
    ) -> list[Claim]:
        """Claim calls in one step, each if it is free and the budget has room for it after those before it."""
        self._hold()
        results = []
        with self._told(), self._writing():
            money = self._money(currency)
            batched = self._db.execute(
                f"SELECT coalesce(sum(bound), 0) FROM claims WHERE currency = ? AND owner LIKE '{_BATCH}%'",
                (currency,),
            ).fetchone()[0]
            claimed = money.claimed
            for key, bound in wanted:
                if (
                    self._db.execute("SELECT 1 FROM claims WHERE key = ?", (key,)).fetchone()
                    or self._db.execute("SELECT 1 FROM calls WHERE key = ?", (key,)).fetchone()
                ):
                    results.append(Claim.TAKEN)
                elif budget is not None and money.spent + money.lost + claimed + bound > budget:
                    # Calls under way may turn out cheaper than they might have been; a batch takes too long to wait.
                    waits = claimed > batched and money.spent + money.lost + batched + bound <= budget
                    results.append(Claim.WAIT if waits else Claim.BROKE)
                else:
                    self._db.execute("INSERT INTO claims VALUES (?, ?, ?, ?)", (key, owner, bound, currency))
                    claimed += bound
                    batched += bound if owner.startswith(_BATCH) else 0.0
                    results.append(Claim.GRANTED)
        return results

    def release(self, key: str, *, lost: bool) -> None:
        """Give up a call of this object's own that gave no answer.

        Args:
            key: The call.
            lost: Whether it may have been billed: then the most it may have cost counts as spent.
        """
        with self._told(), self._writing():
            self._give_up("key = ? AND owner = ?", (key, self.owner), lost=lost)

    def settle(self) -> None:
        """Give up the claims of owners that died; their calls may have been billed."""
        with self._told():
            owners = {row[0] for row in self._db.execute("SELECT DISTINCT owner FROM claims").fetchall()}
        owners |= {path.name for path in self._owners.glob("[!.]*")}
        for owner in sorted(owners):
            if owner != self.owner and not owner.startswith(_BATCH) and self._is_dead(owner):
                with self._told(), self._writing():
                    self._give_up("owner = ?", (owner,), lost=True)
                (self._owners / owner).unlink(missing_ok=True)

    def money(self, currency: str) -> Money:
        """What has been spent, lost and claimed in a currency, by all stages and all runs."""
        with self._told():
            return self._money(currency)

    # -- batches

    def open_batch(self, token: str, address: str) -> None:
        """Remember a batch before it is submitted, so that it can be found again whatever happens."""
        self._hold()
        with self._told():
            self._db.execute("INSERT INTO batches VALUES (?, ?, NULL, ?)", (token, address, self.owner))

    def name_batch(self, token: str, batch_id: str) -> None:
        """Remember under which id the endpoint took a batch."""
        with self._told():
            self._db.execute("UPDATE batches SET batch_id = ? WHERE token = ?", (batch_id, token))

    def batches(self) -> list[Owed]:
        """The batches that endpoints still owe answers to, less those that a living process is just submitting."""
        with self._told():
            rows = self._db.execute("SELECT token, address, batch_id, owner FROM batches ORDER BY token").fetchall()
        return [Owed(*row[:3]) for row in rows if row[2] or row[3] == self.owner or self._is_dead(row[3])]

    def in_batch(self, token: str) -> set[str]:
        """Keys of the calls of a batch that have no answer yet."""
        with self._told():
            rows = self._db.execute("SELECT key FROM claims WHERE owner = ?", (_BATCH + token,))
            return {row[0] for row in rows.fetchall()}

    def close_batch(self, token: str) -> None:
        """Forget a batch; what it gave no answer to was not billed, and is free again."""
        with self._told(), self._writing():
            self._give_up("owner = ?", (_BATCH + token,), lost=False)
            self._db.execute("DELETE FROM batches WHERE token = ?", (token,))

    @staticmethod
    def batch_owner(token: str) -> str:
        """The owner under which the calls of a batch are claimed: it outlives processes."""
        return _BATCH + token

    # -- inside

    def _money(self, currency: str) -> Money:
        row = self._db.execute("SELECT spent, lost FROM money WHERE currency = ?", (currency,)).fetchone() or (
            0.0,
            0.0,
        )
        claimed = self._db.execute("SELECT coalesce(sum(bound), 0.0) FROM claims WHERE currency = ?", (currency,))
        return Money(row[0], row[1], claimed.fetchone()[0])

    def _spend(self, currency: str, *, spent: float = 0.0, lost: float = 0.0) -> None:
        self._db.execute(
            "INSERT INTO money VALUES (?, ?, ?)"
            " ON CONFLICT (currency) DO UPDATE SET spent = spent + excluded.spent, lost = lost + excluded.lost",
            (currency, spent, lost),
        )

    def _give_up(self, which: str, values: tuple[str, ...], *, lost: bool) -> None:
        for bound, currency in self._db.execute(
            f"SELECT bound, currency FROM claims WHERE {which}", values
        ).fetchall():
            if lost:
                self._spend(currency, lost=bound)
        self._db.execute(f"DELETE FROM claims WHERE {which}", values)

    def _hold(self) -> None:
        """Show the others that this owner lives: a lock that the kernel lets go when the process dies."""
        if self._lock is None:
            try:
                self._owners.mkdir(exist_ok=True)
                # Locked before it gets its name, so that nobody sees it free.
                new = self._owners / f".{self.owner}"
                self._lock = new.open("w", encoding="ascii")
                fcntl.flock(self._lock, fcntl.LOCK_EX)
                new.replace(self._owners / self.owner)
            except OSError as error:
                raise CurationError(f"the request cache {self._owners} cannot be written: {error.strerror}") from None

    def _is_dead(self, owner: str) -> bool:
        """Whether an owner has died: nobody holds its lock. What it claimed is settled in one step, so once."""
        try:
            with (self._owners / owner).open("r+", encoding="ascii") as stream:
                fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError:
            pass
        return True

    def _open(self) -> tuple[sqlite3.Connection, int]:
        """The database, made if it is not there, and the version of its format.

        While one process turns a new database to WAL, clears up as the last to close it, or recovers it after a kill,
        sqlite answers others "busy" *at once*, whatever the timeout (sqlite.org/wal.html, section 9); so we wait.
        """
        deadline = time.monotonic() + _PATIENCE
        while True:
            db = sqlite3.connect(self._path, timeout=_PATIENCE, isolation_level=None, check_same_thread=False)
            try:
                return db, _prepare(db)
            except sqlite3.OperationalError as error:
                db.close()
                # The low byte is the kind, the rest only its place.
                if error.sqlite_errorcode & 0xFF not in _PASSING or time.monotonic() > deadline:
                    raise
                time.sleep(random.uniform(0.001, 0.05))
            except BaseException:
                db.close()
                raise

    def _writing(self) -> contextlib.AbstractContextManager[None]:
        return _writing(self._db)

    @contextlib.contextmanager
    def _told(self) -> Iterator[Any]:
        try:
            yield
        except sqlite3.OperationalError as error:
            raise CurationError(
                f"the request cache {self._path} cannot be used: {error}",
                "See that the disk has room and the file may be written; answers so far are kept.",
            ) from None
        except sqlite3.DatabaseError as error:
            raise CurationError(
                f"the request cache {self._path} is damaged: {error}",
                "Move it away to start anew (its answers will be asked and paid for again).",
            ) from None


def _prepare(db: sqlite3.Connection) -> int:
    """Make a database ready for use, its tables too unless a later version wrote it; the version of its format."""
    db.execute("PRAGMA journal_mode=WAL")
    # A kill loses nothing; a power cut may lose the last answers, which are then asked for again.
    db.execute("PRAGMA synchronous=NORMAL")
    with _writing(db):
        version: int = db.execute("PRAGMA user_version").fetchone()[0]
        for statement in _TABLES.split(";")[:-1] if version in (0, _FORMAT) else ():
            db.execute(statement)
        if version == 0:
            db.execute(f"PRAGMA user_version={_FORMAT}")
    return version


@contextlib.contextmanager
def _writing(db: sqlite3.Connection) -> Iterator[None]:
    db.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        with contextlib.suppress(sqlite3.Error):
            db.execute("ROLLBACK")
        raise
    db.execute("COMMIT")
