"""Which requests are let in: with the token, under a name of this machine, and of a limited length."""

from __future__ import annotations

import hmac
import ipaddress
import json
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field

from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from strobe.server.http.launch_token import LaunchToken
from strobe.server.routing.bodies import JSON_TYPE
from strobe.server.routing.endpoints import MOST_QUERY

# Nothing is loaded from elsewhere, whatever the bundle or a trace may hold. Styles: Preact sets `style` attributes.
SECURITY = {
    "Content-Security-Policy": "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'self'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}
MOST_PATH = 4096
# The addresses to which something is sent: a file to open, and notes on a run.
UPLOAD, NOTES = "/runs/upload", "/api/notes"
# Parts of a path that a proxy may have put before the token.
_MOST_PREFIX = 32
_SHOWN = 60


def new_token() -> str:
    """Return a token that cannot be guessed: a part of every path, so that any proxy passes it on."""
    return secrets.token_urlsafe(12)


def _let_in() -> bool:
    return True  # by a server that does not count connections


def refused(status: int, what: str, do: str = "", headers: Mapping[str, str] | None = None) -> Response:
    """Return an answer with the reason for a refusal, in one sentence."""
    body = json.dumps({"error": what, "do": do})
    return Response(body, status, {**SECURITY, "Cache-Control": "no-store", **(headers or {})}, JSON_TYPE)


@dataclass(frozen=True)
class AccessControl:
    """Lets requests through to `inside`, without what stands before and with the token.

    A proxy may put any path before the token (`/user/me/proxy/8888/TOKEN/...`) or take it away: addresses in the page
    are relative, so nobody has to know it. `hosts` are names of this server beside `localhost` and bare addresses: a
    page of another site could reach this server by a name of its own that points here (DNS rebinding). `frames` are
    origins whose pages may show this server's in a frame.
    """

    inside: ASGIApp
    token: str
    hosts: frozenset[str] = frozenset()
    frames: tuple[str, ...] = ()
    launch: LaunchToken = field(default_factory=LaunchToken)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            return
        send = self._framed(send) if self.frames else send
        refusal = self._refusal(scope)
        before, here, behind = ("", None, "") if refusal else self._split(scope["path"])
        if refusal is None and here is None:
            refusal = self._launched(scope)
        if refusal is None and not scope.get("state", {}).get("let_in", _let_in)():
            refusal = refused(503, "too many connections are open already", "Close some pages of this server.")
        if refusal is None and not behind:
            refusal = Response(status_code=308, headers={**SECURITY, "Location": f"{self.token}/"})
        if refusal is not None:
            await refusal(scope, receive, send)
            return
        root = f"{before}/{here}"
        await self.inside({**scope, "root_path": root, "path": root + behind}, receive, send)

    def _launched(self, scope: Scope) -> Response:
        """Answer a request without the token of the page: where it has that of the launch, with the way to the page."""
        what, do = "this address has no token, or a wrong one", "Open the whole address that `strobe view` printed."
        if self.launch.is_in(scope["path"]):
            if scope["method"] == "GET" and self.launch.use(scope.get("client"), scope.get("server")):
                up = "../" if scope["path"].endswith("/") else ""
                headers = {**SECURITY, "Location": f"{up}{self.token}/", "Cache-Control": "no-store"}
                return Response(status_code=303, headers=headers)
            what = "this address was good once, within a minute after the start, and for its user only"
        return refused(404, what, do)

    def _framed(self, send: Send) -> Send:
        """Return a `send` that allows frames of other origins."""
        policy = SECURITY["Content-Security-Policy"].encode()
        allowing = b" ".join((policy, *(origin.encode() for origin in self.frames)))  # frame-ancestors is the last one

        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = [(name, allowing if value == policy else value) for name, value in message["headers"]]
                message = {**message, "headers": headers}
            await send(message)

        return sending

    def _refusal(self, scope: Scope) -> Response | None:
        host = next((value.decode("latin-1") for name, value in scope["headers"] if name == b"host"), "")
        if not self._knows(host):
            return refused(
                421,
                f"this server is not '{host[:_SHOWN]}'",
                "To allow a name that a proxy passes on: strobe view --allow-host NAME",
            )
        sends = scope["method"] == "POST" and scope["path"].endswith((UPLOAD, NOTES))
        if scope["method"] not in ("GET", "HEAD") and not sends:
            return refused(405, f"'{scope['method'][:_SHOWN]}': this server only reads", headers={"Allow": "GET, HEAD"})
        if len(scope["path"]) > MOST_PATH or len(scope["query_string"]) > MOST_QUERY:
            return refused(
                414, f"an address has at most {MOST_PATH} characters, and {MOST_QUERY} more behind the question mark"
            )
        return None

    def _knows(self, host: str) -> bool:
        name = host.rpartition(":")[0] if host.rpartition(":")[2].isdecimal() else host
        name = name.strip("[]").rstrip(".").lower()
        if name in ("", "localhost") or name in self.hosts or "*" in self.hosts:
            return True
        try:
            ipaddress.ip_address(name)
        except ValueError:
            return False
        return True

    def _split(self, path: str) -> tuple[str, str | None, str]:
        """Return what stands before the token, the token (None where it is not there), and what stands behind it."""
        parts = path.split("/")
        for at in range(1, min(len(parts), _MOST_PREFIX)):
            if hmac.compare_digest(parts[at].encode("utf-8", "surrogatepass"), self.token.encode()):
                behind = "/" + "/".join(parts[at + 1 :]) if at + 1 < len(parts) else ""
                return "/".join(parts[:at]), parts[at], behind
        return "", None, ""
