"""The public traces, imported once a session into a folder of our own."""

from __future__ import annotations

import gzip
import json
import re
from decimal import Decimal
from pathlib import Path

import pytest

import strobe
from strobe.store.imports import opened

PUBLIC = Path(__file__).parents[3] / "shared" / "traces"


@pytest.fixture(scope="session")
def public(tmp_path_factory):
    """Return a function that opens a public trace by its path below the folder; skips where the folder is not here."""
    if not PUBLIC.is_dir():
        pytest.skip("the folder of public traces is not here")
    cache, known = tmp_path_factory.mktemp("public"), {}

    def open_public(name: str) -> strobe.Trace:
        if name not in known:
            known[name] = strobe.open(opened(PUBLIC / name, cache=cache, talk=False))
        return known[name]

    return open_public


@pytest.fixture(scope="session")
def as_hta_sees_it(tmp_path_factory):
    """Return a function that opens a public trace as Holistic Trace Analysis cuts it, with HTA's own results.

    HTA leaves out the last ProfilerStep: what the host did from its start on, and what GPUs did for that.
    """
    if not PUBLIC.is_dir():
        pytest.skip("the folder of public traces is not here")
    folder, known = tmp_path_factory.mktemp("hta"), {}

    def cut(name: str) -> tuple[strobe.Trace, dict[str, object]]:
        if name not in known:
            # Times as texts: a float does not hold nanoseconds.
            whole = json.loads(gzip.decompress((PUBLIC / "kineto" / f"{name}.json.gz").read_bytes()), parse_float=str)
            events = [e for e in whole["traceEvents"] if e.get("ph") == "X" and "cat" in e]
            marks = [e for e in events if re.match(r"ProfilerStep#\d+$", e["name"]) and e["cat"] == "user_annotation"]
            last = max(Decimal(e["ts"]) for e in marks)
            on_gpu = [e.get("args", {}).get("stream", -1) != -1 and e["cat"] != "cuda_runtime" for e in events]
            host = [e for e, gpu in zip(events, on_gpu, strict=True) if not gpu and Decimal(e["ts"]) < last]
            launched = {e["args"]["correlation"] for e in host if "correlation" in e.get("args", {})}
            gpu = [e for e, on in zip(events, on_gpu, strict=True) if on and e["args"].get("correlation") in launched]
            path = folder / f"{name}.json"
            path.write_text(json.dumps({**whole, "traceEvents": host + gpu}))
            told = json.loads((PUBLIC / f"{name}.hta.json").read_text())["analyses"]
            known[name] = strobe.open(opened(path, talk=False)), told
        return known[name]

    return cut
