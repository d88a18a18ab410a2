"""The public traces, imported once a session into a folder of our own."""

from __future__ import annotations

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
