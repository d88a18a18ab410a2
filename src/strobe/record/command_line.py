"""Command lines as they are recorded: without what is secret in them (native/core/format/secrets.h)."""

from __future__ import annotations

import os

TYPE_CHECKING = False  # typing itself is not imported into the measured program
if TYPE_CHECKING:
    from collections.abc import Iterable


def without_secrets(words: Iterable[str]) -> list[str]:
    """Return the words of a command line with `***` instead of passwords, tokens and keys."""
    from strobe.native import core

    return [os.fsdecode(word) for word in core.without_secrets([os.fsencode(word) for word in words])]
