"""Who may talk to the page: one person on this machine.

Bound to loopback a server is still reachable by every program of the machine, and by every web site that the person's
browser has open: by posting across origins, and by a name that is made to point to 127.0.0.1 (DNS rebinding). So each
request must name this server as its host, carry the token of the printed address (once as a parameter, then as a
cookie), and a request that changes something must come from the page itself.
"""

from __future__ import annotations

import secrets
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qs

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

__all__ = ["Guard"]

_HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'"
    ),
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cache-control": "no-store",
}


class Guard:
    """ASGI middleware that lets through what the page's own person asks for, and sets the headers of all answers.

    Args:
        app: The application behind it.
        token: The secret of the printed address.
        port: The port it is bound to; part of the cookie's name, since cookies do not tell ports apart.
    """

    def __init__(self, app: ASGIApp, token: str, port: int) -> None:
        self.app, self.token = app, token
        self.cookie = f"curation_review_{port}"
        self.hosts = frozenset({f"127.0.0.1:{port}", f"localhost:{port}"})

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, or hand on."""
        if scope["type"] != "http":
            # No web sockets; the life span goes through.
            if scope["type"] == "lifespan":
                await self.app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(_HEADERS)
            await send(message)

        answer: ASGIApp = self._refusal(scope) or self.app
        await answer(scope, receive, send_with_headers)

    def _refusal(self, scope: Scope) -> Response | None:
        headers = Headers(scope=scope)
        host = headers.get("host", "")
        if host not in self.hosts:
            return PlainTextResponse("This page answers on 127.0.0.1 only.", 421)
        given = parse_qs(scope["query_string"].decode("latin-1")).get("token", [""])[0]
        if scope["method"] == "GET" and scope["path"] == "/" and self._right(given):
            # The address with the token leaves the address bar; the cookie stays.
            response = RedirectResponse("/", 303)
            response.set_cookie(self.cookie, self.token, httponly=True, samesite="strict", path="/")
            return response
        if not self._right(self._cookie(headers)):
            return PlainTextResponse("Open the address that `curate review --web` printed: it holds the key.", 403)
        if scope["method"] not in ("GET", "HEAD") and not self._from_page(headers, host):
            return PlainTextResponse("Only the page itself may change something.", 403)
        return None

    def _right(self, given: str) -> bool:
        return secrets.compare_digest(given.encode(), self.token.encode())

    def _cookie(self, headers: Headers) -> str:
        try:
            morsel = SimpleCookie(headers.get("cookie", "")).get(self.cookie)
        except CookieError:
            return ""
        return morsel.value if morsel else ""

    @staticmethod
    def _from_page(headers: Headers, host: str) -> bool:
        json = headers.get("content-type", "").partition(";")[0].strip() == "application/json"
        return json and headers.get("origin") == f"http://{host}"
