"""What of strobe is installed here: all of it, or the recorder alone (docs/how-to/install.md)."""

from __future__ import annotations

from strobe.errors import StrobeError
from strobe.model.installed import FOR_READING, READERS, is_whole, missing


def missing_for_reading() -> str:
    """Return the first module without which no trace can be read here, "" if none is missing."""
    return next(iter(missing(FOR_READING)), "") if is_whole() else READERS


def cannot_read(missing: str) -> StrobeError:
    """Return the error of a question about a trace where `missing` is missing."""
    if missing.startswith("strobe."):
        return StrobeError("only the recorder of strobe is installed here: it reads no traces", do="pip install strobe")
    return StrobeError(f"reading traces needs the package {missing}, which is missing", do=f"pip install {missing}")
