"""What strobe's own process leaves out of the libraries it imports."""

from __future__ import annotations

import os
import sys


class _PandasLater:
    """Refuses the first two imports of pandas, which cost a second.

    They come from pyarrow (its Python and its C++ part), which only checks whether its first array belongs to pandas.
    Code that needs pandas imports it again, and gets it.
    """

    def __init__(self) -> None:
        self._times = 2

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        if name == "pandas":
            self._times -= 1
            if not self._times:
                sys.meta_path.remove(self)
            raise ModuleNotFoundError("No module named 'pandas'", name="pandas")


def without_pandas() -> None:
    """Let pyarrow do without pandas until somebody asks for it."""
    sys.meta_path.insert(0, _PandasLater())


def without_blas_threads() -> None:
    """Keep NumPy's BLAS from starting threads: they spin for a while (0.2 s of CPU on two cores), and have no work.

    Children inherit that, so this is only for processes that start no program anymore.
    """
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
