"""pyarrow, imported by the first use of one of its names: that takes 0.1 s and 28 MB, and opening a file needs none."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

__all__ = ["pa"]

if TYPE_CHECKING:
    import pyarrow as pa
else:

    class _Later:
        def __getattr__(self, name: str) -> object:
            found = getattr(importlib.import_module("pyarrow"), name)
            setattr(self, name, found)
            return found

    pa = _Later()
