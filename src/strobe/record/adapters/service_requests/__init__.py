"""Requests of services: ASGI under uvicorn, Starlette and FastAPI, aiohttp.web, streams of asyncio, http.server.

In no preset: every callback of an event loop is watched, which a service pays for.
"""

from __future__ import annotations

from strobe.record.adapter import Adapter

ADAPTER = Adapter(
    "service_requests",
    short="requests",
    order=50,
    hooks="strobe.record.adapters.service_requests.hooks",
)
