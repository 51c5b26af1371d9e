"""The table store of a workspace: immutable objects, one atomic flip of ``latest`` for all tables of a run.

    objects/<stage>/<key>/manifest.json        what was built, from what, why, with which files
    objects/<stage>/<key>/data/<table>/*.parquet
    parts/<stage>/<key>/                        an object being built; finished parts survive a kill
    runs/<run>/<table>                          links into objects; run.json says which keys
    latest                                      link to the current run
    _tmp/                                       anything half done; emptied by the next run

An object's directory appears by one rename, ``latest`` changes by one rename: so a reader always sees a whole table.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import uuid
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from curation.engine.keys import file_digest
from curation.errors import CurationError

__all__ = ["Store", "fsync_directory", "fsync_file", "write_json"]


def fsync_file(path: Path) -> None:
    """Force a file's bytes to the disk."""
    with path.open("rb") as stream:
        os.fsync(stream.fileno())


def fsync_directory(path: Path) -> None:
    """Force a directory's entries to the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_json(path: Path, document: Any) -> None:
    """Write JSON so that ``path`` holds either the old or the new document, whole."""
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}")
    temporary.write_text(json.dumps(document, indent=1, ensure_ascii=False, sort_keys=True), encoding="utf-8")
    fsync_file(temporary)
    temporary.replace(path)


def _read_json(path: Path) -> dict[str, Any] | None:
    """A JSON object; None where there is none or it is damaged, since all it says can be built again."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return None
    return document if isinstance(document, dict) else None


class Store:
    """The files of one workspace. Only the holder of :meth:`lock` may write."""

    def __init__(self, root: Path) -> None:
        self.root = root

    # -- places

    @property
    def temporary(self) -> Path:
        """Where half-done things live."""
        return self.root / "_tmp"

    def object_directory(self, stage: str, key: str) -> Path:
        """The directory of a built object."""
        return self.root / "objects" / stage / key

    def build_directory(self, stage: str, key: str) -> Path:
        """The directory of an object that is being built."""
        return self.root / "parts" / stage / key

    def table_directory(self, stage: str, key: str, table: str) -> Path:
        """The directory with the Parquet files of one table of an object."""
        return self.object_directory(stage, key) / "data" / table

    # -- lock

    @contextlib.contextmanager
    def lock(self) -> Iterator[None]:
        """Hold the workspace for writing; the kernel lets go when the process dies, however it dies.

        Raises:
            CurationError: Another process holds it, or the workspace cannot be written.
        """
        try:
            self.root.mkdir(parents=True, exist_ok=True)
            stream = (self.root / ".lock").open("a+", encoding="ascii")
        except OSError as error:
            raise CurationError(f"the workspace {self.root} cannot be written: {error.strerror}") from None
        with stream:
            try:
                fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                stream.seek(0)
                owner = stream.read().strip()
                raise CurationError(
                    f"another run holds the workspace {self.root}" + (f" (process {owner})" if owner else ""),
                    "Wait until it ends, or end it; a killed run lets go by itself.",
                ) from None
            stream.truncate(0)
            stream.write(str(os.getpid()))
            stream.flush()
            # The lock is ours, so whatever lies here was left by a run that was killed.
            shutil.rmtree(self.temporary, ignore_errors=True)
            for name in ("objects", "parts", "runs", "_tmp"):
                (self.root / name).mkdir(exist_ok=True)
            yield

    # -- objects

    def manifest(self, stage: str, key: str) -> dict[str, Any] | None:
        """Manifest of a built object, or None if there is none."""
        path = self.object_directory(stage, key) / "manifest.json"
        return _read_json(path)

    def is_whole(self, stage: str, key: str) -> bool:
        """Whether the object is there with every file of its manifest at its size."""
        manifest = self.manifest(stage, key)
        if manifest is None:
            return False
        data = self.object_directory(stage, key) / "data"
        for table, files in manifest["tables"].items():
            for file, entry in files.items():
                try:
                    if (data / table / file).stat().st_size != entry["bytes"]:
                        return False
                except OSError:
                    return False
        return True

    def describe_files(self, data: Path) -> dict[str, dict[str, dict[str, Any]]]:
        """Table to file name to rows, bytes and SHA-256, for the tables under ``data`` and what lies beside them."""
        import pyarrow.parquet as pq

        tables: dict[str, dict[str, dict[str, Any]]] = {}
        for directory in sorted(path for path in data.iterdir() if path.is_dir()):
            tables[directory.name] = {
                file.name: {
                    "sha256": file_digest(file),
                    "rows": pq.read_metadata(file).num_rows if file.suffix == ".parquet" else 0,
                    "bytes": file.stat().st_size,
                }
                for file in sorted(directory.iterdir())
            }
        return tables

    def commit(self, stage: str, key: str, manifest: dict[str, Any]) -> None:
        """Turn the build directory into the object, by one rename."""
        build, target = self.build_directory(stage, key), self.object_directory(stage, key)
        for leftover in ("_done", "_keep"):
            shutil.rmtree(build / leftover, ignore_errors=True)
        write_json(build / "manifest.json", manifest)
        fsync_directory(build)
        target.parent.mkdir(parents=True, exist_ok=True)
        if target.exists():  # damaged, or it would not have been built again
            target.rename(self.temporary / f"damaged-{stage}-{key}")
        build.rename(target)
        fsync_directory(target.parent)

    # -- runs

    def publish(self, run: dict[str, Any], tables: dict[str, tuple[str, str]]) -> str:
        """Make the tables of a run visible together and return the run's name.

        Args:
            run: What is kept in ``run.json``; must hold ``id``.
            tables: Table to (stage, key) of the object that holds it.
        """
        name = str(run["id"])
        directory = self.temporary / name
        directory.mkdir()
        for table, (stage, key) in tables.items():
            (directory / table).symlink_to(Path("..", "..", "objects", stage, key, "data", table))
        write_json(directory / "run.json", run)
        fsync_directory(directory)
        directory.rename(self.root / "runs" / name)
        fsync_directory(self.root / "runs")
        link = self.temporary / f"latest-{name}"
        link.symlink_to(Path("runs", name))
        link.replace(self.root / "latest")
        fsync_directory(self.root)
        return name

    def runs(self) -> list[str]:
        """Names of all published runs, oldest first."""
        directory = self.root / "runs"
        return sorted(path.name for path in directory.iterdir() if path.is_dir()) if directory.is_dir() else []

    def run(self, name: str = "latest") -> dict[str, Any] | None:
        """``run.json`` of a run; None if there is no such run."""
        path = self.root / name if name == "latest" else self.root / "runs" / name
        return _read_json(path / "run.json")

    def verify(self, name: str = "latest") -> list[str]:
        """Sentences about files of a run that are missing, changed or not listed; empty when all is well."""
        run = self.run(name)
        if run is None:
            return []
        faults = []
        for stage, key in {tuple(pair) for pair in run["tables"].values()}:
            manifest = self.manifest(stage, key)
            if manifest is None:
                faults.append(f"{stage}/{key} has no manifest")
                continue
            data = self.object_directory(stage, key) / "data"
            listed = {
                f"{table}/{file}": entry
                for table, files in manifest["tables"].items()
                for file, entry in files.items()
            }
            present = {str(path.relative_to(data)) for path in data.rglob("*") if path.is_file()}
            faults += [f"{stage}: {file} is missing" for file in sorted(listed.keys() - present)]
            faults += [f"{stage}: {file} is not in the manifest" for file in sorted(present - listed.keys())]
            faults += [
                f"{stage}: {file} has changed"
                for file in sorted(listed.keys() & present)
                if file_digest(data / file) != listed[file]["sha256"]
            ]
        return sorted(faults)

    # -- sources

    def hash_sources(self, files: Iterable[Path], root: Path) -> dict[str, str]:
        """File (relative to ``root``) to SHA-256; a file whose size, time and inode are known is not read again."""
        cache_path = self.root / "sources.json"
        cache = _read_json(cache_path) or {}
        hashes, fresh = {}, {}
        for file in files:
            status = file.stat()
            signature = [status.st_size, status.st_mtime_ns, status.st_ino]
            known = cache.get(str(file))
            digest = known["sha256"] if known and known["signature"] == signature else file_digest(file)
            fresh[str(file)] = {"signature": signature, "sha256": digest}
            hashes[os.path.relpath(file, root)] = digest
        if fresh != cache and self.root.is_dir():
            with contextlib.suppress(OSError):  # a cache that cannot be written costs time, not truth
                write_json(cache_path, fresh)
        return hashes
