"""Strobe records Python, GPU and MPI programs, finds the loop that dominates them, and shows where the time goes.

    trace = strobe.open("train.strobe")     # or strobe.last()
    trace.operators(top=10)                 # every analysis is a method; every answer is a Table
    with strobe.record("a.strobe"):         # record a part of a program; see strobe.region(), strobe.step()

Importing strobe imports nothing else: each name below is fetched when it is first used.
`__init__.pyi` lists them for editors and type checkers.
"""

from __future__ import annotations

from importlib import import_module

__version__ = "0.1.0"

_RECORDING = ("counter", "current", "mark", "pause", "record", "region", "resume", "start", "step", "stop")
_HOME = {
    **{name: ("strobe.record.api", name) for name in _RECORDING},
    "StrobeError": ("strobe.errors", "StrobeError"),
    "Table": ("strobe.tables.table", "Table"),
    "Trace": ("strobe.api.trace", "Trace"),
    "last": ("strobe.api.trace", "last"),
    "open": ("strobe.api.trace", "open_trace"),
    "runs": ("strobe.trace.archive", "runs"),
}
__all__ = sorted([*_HOME, "__version__"])


def __getattr__(name: str) -> object:
    try:
        module, attribute = _HOME[name]
    except KeyError:
        raise AttributeError(f"module 'strobe' has no attribute {name!r}") from None
    value: object = getattr(import_module(module), attribute)
    # `strobe.record` is a package, too: importing it has just put the (callable) package under this name.
    globals()[name] = value
    return value


def load_ipython_extension(shell: object) -> None:
    """Register the magics of notebooks: IPython calls this for `%load_ext strobe`."""
    import_module("strobe.cli.magics").register(shell)


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME})
