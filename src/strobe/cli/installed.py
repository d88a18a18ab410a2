"""What of strobe is installed here: all of it, or the recorder alone (docs/how-to/install.md)."""

from __future__ import annotations

from importlib.util import find_spec

from strobe.errors import StrobeError

_FOR_READING = ("strobe.trace", "numpy", "pyarrow", "duckdb")


def missing_for_reading() -> str:
    """Return the first module without which no trace can be read here, "" if none is missing."""
    return next((name for name in _FOR_READING if find_spec(name) is None), "")


def cannot_read(missing: str) -> StrobeError:
    """Return the error of a question about a trace where `missing` is missing."""
    if missing.startswith("strobe."):
        return StrobeError("only the recorder of strobe is installed here: it reads no traces", do="pip install strobe")
    return StrobeError(f"reading traces needs the package {missing}, which is missing", do=f"pip install {missing}")
