"""The batch interface of the local server: files, batches, and the faults that batches have."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from email.parser import BytesParser
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.teachers.llm.server import Server


@dataclass
class Batch:
    """A batch as the server keeps it; ``polls`` counts how often somebody looked at it."""

    batch_id: str
    file_id: str
    metadata: dict[str, str]
    polls: int = 0
    asked: list[int] = field(default_factory=list)


class BatchDesk:
    """Plays ``/files`` and ``/batches``.

    Attributes:
        polls: Looks at a batch before it has ended.
        status: How batches end.
        mangle: What becomes of the output: a function from the good lines, and the number of the batch, to the lines
            sent (dicts or raw bytes).
        errors: What becomes of the error file, in the same way.
        broken: Paths (their beginnings) with the statuses that they answer with, taken one by one.
        late: Statuses that making a batch answers with, one by one, although the batch was made.
        batches: All batches, by id.
    """

    def __init__(self, server: Server) -> None:
        self._server = server
        self._files: dict[str, bytes] = {}
        self.batches: dict[str, Batch] = {}
        self.polls = 1
        self.status = "completed"
        self.mangle: Callable[[list[Any], int], list[Any]] = lambda lines, number: random.Random(3).sample(
            lines, len(lines)
        )
        self.errors: Callable[[list[Any], int], list[Any]] = lambda lines, number: []
        self.broken: dict[str, list[int]] = {}
        self.late: list[int] = []

    def answer(self, method: str, path: str, headers: dict[str, str], body: bytes) -> tuple[int, Any]:
        """Status and body of the response to a request."""
        path = path.removeprefix("/v1").split("?")[0]
        for beginning, statuses in self.broken.items():
            if f"{method} {path}".startswith(beginning) and statuses:
                status = statuses.pop(0)
                return status, {"error": {"message": f"fault {status}"}}
        match method, path.strip("/").split("/"):
            case "POST", ["files"]:
                file_id = f"file-{len(self._files)}"
                self._files[file_id] = _uploaded(headers["content-type"], body)
                return 200, {"id": file_id, "object": "file", "purpose": "batch", "bytes": 1, "created_at": 0,
                             "filename": "f", "status": "processed"}  # fmt: skip
            case "GET", ["files", file_id, "content"]:
                return 200, self._files[file_id]
            case "POST", ["batches"]:
                asked = json.loads(body)
                batch = Batch(f"batch-{len(self.batches)}", asked["input_file_id"], asked["metadata"])
                lines = self._files[batch.file_id].splitlines()
                batch.asked = [int(json.loads(line)["body"]["messages"][1]["content"].split()[0]) for line in lines]
                self.batches[batch.batch_id] = batch
                status = self.late.pop(0) if self.late else 200
                return status, self._shown(batch, "validating")
            case "GET", ["batches"]:
                listed = [self._shown(batch, self.status) for batch in reversed(self.batches.values())]
                return 200, {"object": "list", "data": listed, "has_more": False}
            case "GET", ["batches", batch_id]:
                batch = self.batches[batch_id]
                batch.polls += 1
                return 200, self._shown(batch, self.status if batch.polls > self.polls else "in_progress")
            case "GET", ["models"]:
                return 200, {"object": "list", "data": []}
        return 404, {"error": {"message": f"no {path} here"}}

    def _shown(self, batch: Batch, status: str) -> dict[str, Any]:
        shown: dict[str, Any] = {
            "id": batch.batch_id,
            "object": "batch",
            "endpoint": "/v1/chat/completions",
            "input_file_id": batch.file_id,
            "completion_window": "24h",
            "created_at": 1000,
            "metadata": batch.metadata,
            "status": status,
        }
        if status in ("completed", "expired", "cancelled"):
            number = list(self.batches).index(batch.batch_id)
            good = [self._line(json.loads(line)) for line in self._files[batch.file_id].splitlines()]
            for kind, lines in (("output", self.mangle(good, number)), ("error", self.errors(good, number))):
                name = f"{kind}-{batch.batch_id}"
                self._files[name] = b"".join(
                    (line if isinstance(line, bytes) else json.dumps(line).encode()) + b"\n" for line in lines
                )
                shown[f"{kind}_file_id"] = name
            shown["completed_at"] = 1060
        if status == "failed":
            shown["errors"] = {
                "object": "list",
                "data": [{"message": "line 1 is no request", "code": "bad", "line": 1}],
            }
        return shown

    def _line(self, asked: dict[str, Any]) -> dict[str, Any]:
        """A line of the output: the script is asked, as it is online."""
        sent = self._server.note(asked["body"], None)
        self._server.sent.pop()
        act = self._server.script(sent)
        response = {"status_code": act.status, "request_id": "r", "body": act.response(sent)}
        return {"id": "line", "custom_id": asked["custom_id"], "response": response, "error": None}


def _uploaded(kind: str, body: bytes) -> bytes:
    """The file in a form that was uploaded."""
    form = BytesParser().parsebytes(b"content-type: " + kind.encode() + b"\r\n\r\n" + body)
    for part in form.get_payload():  # type: ignore[union-attr]
        if part.get_filename():  # type: ignore[union-attr]
            return part.get_payload(decode=True)  # type: ignore[union-attr,return-value]
    raise AssertionError("no file in the form")
