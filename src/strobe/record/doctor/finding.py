"""What `strobe doctor` finds out: one finding for each thing that it looks at."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import metadata

OK, LIMITED, MISSING, NOTE = "ok", "limited", "missing", "note"


@dataclass(frozen=True)
class Finding:
    """The result of one check: `state` is ok, limited, missing or note; `mend` a command that repairs it, or empty."""

    area: str
    name: str
    state: str
    found: str
    mend: str = ""


def installed(package: str) -> str:
    """Return the version of an installed package; empty if it is not installed."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return ""
