"""Requests of services: ASGI under uvicorn, Starlette and FastAPI, aiohttp.web, streams of asyncio, http.server."""

from __future__ import annotations

from strobe.record.adapter import Adapter

ADAPTER = Adapter(
    "service_requests",
    short="requests",
    order=50,
    presets=("auto", "light", "sampling"),
    hooks="strobe.record.adapters.service_requests.hooks",
)
