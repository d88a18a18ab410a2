"""What of strobe is installed here, and of the packages that it needs (docs/how-to/install.md)."""

from importlib.util import find_spec

# Modules that lie in the whole of strobe only, and packages that it needs: to read traces, and to show them in a page.
READERS = "strobe.trace"
FOR_READING = ("numpy", "pyarrow", "duckdb")
FOR_VIEWING = ("starlette", "uvicorn")


def is_whole() -> bool:
    """Return whether all of strobe is installed, not the recorder alone."""
    return find_spec(READERS) is not None


def missing(packages: tuple[str, ...]) -> list[str]:
    """Return those of some packages that are not installed."""
    return [name for name in packages if find_spec(name) is None]
