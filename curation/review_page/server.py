"""The server behind the page: starlette and uvicorn on loopback; every answer of the desk as JSON."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import socket
import threading
import webbrowser
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path
from typing import Any

from polars.exceptions import PolarsError
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from curation.errors import CurationError
from curation.review_page.desk import Desk
from curation.review_page.guard import Guard
from curation.review_page.inputs import whole
from curation.taxonomy.places import REVIEW

__all__ = ["make_app", "serve"]

_STATIC = Path(__file__).with_name("static")
_MOST_BYTES = 8 << 20
_FOLD_SECONDS = 1.0


def serve(workspace: Path, *, port: int = 0, open_browser: bool = True, by: str | None = None) -> None:
    """Serve the review page of a workspace until Ctrl-C.

    Args:
        workspace: The workspace directory.
        port: Port on 127.0.0.1; 0 takes a free one.
        open_browser: Open the address in the person's browser too; it is printed in any case.
        by: Who reviews: the name that the page begins with. Without it, the one given there the last time.

    Raises:
        CurationError: The workspace cannot be reviewed, or the port is taken.
    """
    import uvicorn

    with contextlib.closing(Desk(workspace, by)) as desk, _listen(port) as listener:
        token, port = secrets.token_urlsafe(32), listener.getsockname()[1]
        address = f"http://127.0.0.1:{port}/?token={token}"
        config = uvicorn.Config(
            make_app(desk, token, port), log_level="warning", server_header=False, timeout_graceful_shutdown=2
        )
        print(
            f"The review page is at {address}\nCtrl-C ends it; what was decided is in {desk.root / REVIEW}.",
            flush=True,
        )
        if open_browser:
            threading.Timer(0.3, webbrowser.open, [address]).start()
        with contextlib.suppress(KeyboardInterrupt):
            uvicorn.Server(config).run(sockets=[listener])


def _listen(port: int) -> socket.socket:
    try:
        return socket.create_server(("127.0.0.1", port))
    except (OSError, OverflowError) as error:
        raise CurationError(
            f"port {port} of 127.0.0.1 cannot be used: {getattr(error, 'strerror', None) or error}",
            "Give another one, or 0 for a free one.",
        ) from None


def make_app(desk: Desk, token: str, port: int) -> Starlette:
    """The application: the page's files, and the desk's methods under ``/api``."""
    reads: dict[str, Callable[[Mapping[str, str]], Any]] = {
        "state": lambda _: desk.state(),
        "tree": lambda _: desk.tree(),
        "node": lambda q: desk.node(q["id"], q.get("order", "frequent"), whole(q.get("offset", "0"))),
        "closest": lambda q: desk.closest(q["id"]),
        "proposals": lambda q: desk.find_proposals(q),
        "rows": lambda q: desk.rows([key for key in q["ids"].split(",") if key]),
        "proposal": lambda q: desk.proposal(q["id"]),
        "seeds": lambda q: desk.find_seeds(q),
        "versions": lambda _: desk.versions(),
        "compare": lambda q: desk.compare(q["from"], q["to"]),
        "preview": lambda _: desk.preview(),
    }
    writes: dict[str, Callable[[dict[str, Any]], Any]] = {
        "decide": desk.decide,
        "label": desk.label,
        "undo": lambda _: desk.undo(),
        "redo": lambda _: desk.redo(),
        "apply": desk.apply,
        "return": desk.return_to,
        "put_away": lambda _: desk.put_away(),
    }
    routes = [Route(f"/api/{name}", _reader(read)) for name, read in reads.items()]
    routes += [Route(f"/api/{name}", _writer(write), methods=["POST"]) for name, write in writes.items()]

    @contextlib.asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        folding = asyncio.create_task(_keep_folded(desk))
        yield
        folding.cancel()

    return Starlette(
        routes=[*routes, Mount("/", StaticFiles(directory=_STATIC, html=True))],
        middleware=[Middleware(Guard, token=token, port=port)],
        lifespan=lifespan,
    )


def _reader(read: Callable[[Mapping[str, str]], Any]) -> Callable[[Request], Any]:
    async def endpoint(request: Request) -> Response:
        return await _answer(lambda: read(request.query_params))

    return endpoint


def _writer(write: Callable[[dict[str, Any]], Any]) -> Callable[[Request], Any]:
    async def endpoint(request: Request) -> Response:
        body = b""
        async for chunk in request.stream():
            body += chunk
            if len(body) > _MOST_BYTES:
                return JSONResponse({"message": "that is too much for one decision"}, 413)
        return await _answer(lambda: write(_object(body)))

    return endpoint


def _object(body: bytes) -> dict[str, Any]:
    import json

    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise CurationError("the page sent something that is not a JSON object")
    return value


async def _answer(work: Callable[[], Any]) -> Response:
    """What ``work`` returns, or the sentence of what is wrong; off the event loop, so the list keeps scrolling."""
    try:
        return JSONResponse(await run_in_threadpool(work))
    except CurationError as error:
        return JSONResponse({"message": error.message, "hint": error.hint}, 422)
    except (PolarsError, OSError) as error:
        message = f"a table of this workspace cannot be read: {str(error).splitlines()[0]}"
        return JSONResponse({"message": message, "hint": "Type `curate run`, then load the page again."}, 422)
    except KeyError as error:
        return JSONResponse({"message": f"there is no {error.args[0]!r}", "hint": None}, 404)


async def _keep_folded(desk: Desk) -> None:
    while True:
        await asyncio.sleep(_FOLD_SECONDS)
        await run_in_threadpool(desk.book.fold_when_quiet)
