"""The public traces as open traces, and as Holistic Trace Analysis cuts them."""

from __future__ import annotations

import gzip
import json
import re
from decimal import Decimal

import pytest

import strobe
from strobe.api.imports import opened
from tests.public import FOLDER


@pytest.fixture(scope="session")
def public(public_cache):
    """Return a function that opens a public trace by its path below the folder."""
    known = {}

    def open_public(name: str) -> strobe.Trace:
        if name not in known:
            known[name] = strobe.open(opened(FOLDER / name, cache=public_cache, talk=False))
        return known[name]

    return open_public


@pytest.fixture(scope="session")
def as_hta_sees_it(public_cache):
    """Return a function that opens a public trace as Holistic Trace Analysis cuts it, with HTA's own results.

    HTA leaves out the last ProfilerStep: what the host did from its start on, and what GPUs did for that.
    """
    folder, known = public_cache / "hta", {}
    folder.mkdir()

    def cut(name: str) -> tuple[strobe.Trace, dict[str, object]]:
        if name not in known:
            # Times as texts: a float does not hold nanoseconds.
            whole = json.loads(gzip.decompress((FOLDER / "kineto" / f"{name}.json.gz").read_bytes()), parse_float=str)
            events = [e for e in whole["traceEvents"] if e.get("ph") == "X" and "cat" in e]
            marks = [e for e in events if re.match(r"ProfilerStep#\d+$", e["name"]) and e["cat"] == "user_annotation"]
            last = max(Decimal(e["ts"]) for e in marks)
            on_gpu = [e.get("args", {}).get("stream", -1) != -1 and e["cat"] != "cuda_runtime" for e in events]
            host = [e for e, gpu in zip(events, on_gpu, strict=True) if not gpu and Decimal(e["ts"]) < last]
            launched = {e["args"]["correlation"] for e in host if "correlation" in e.get("args", {})}
            gpu = [e for e, on in zip(events, on_gpu, strict=True) if on and e["args"].get("correlation") in launched]
            path = folder / f"{name}.json"
            path.write_text(json.dumps({**whole, "traceEvents": host + gpu}))
            told = json.loads((FOLDER / f"{name}.hta.json").read_text())["analyses"]
            known[name] = strobe.open(opened(path, talk=False)), told
        return known[name]

    return cut
