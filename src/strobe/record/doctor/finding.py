"""What `strobe doctor` says: one finding for each thing that was looked at."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from importlib import metadata

OK, LIMITED, MISSING, NOTE = "ok", "limited", "missing", "note"


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at: `state` is ok, limited, missing or note; `mend` a command, or empty."""

    area: str
    name: str
    state: str
    found: str
    mend: str = ""

    def as_row(self) -> dict[str, str]:
        """The finding as JSON has it."""
        return asdict(self)


def installed(package: str) -> str:
    """Return the version of an installed package; empty: there is none."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return ""
