"""Recording: what runs inside the measured program (standard library and the core only), and what starts it.

`strobe.record` is this package and, called, the context manager `strobe.record.api.record`: `with
strobe.record("a.strobe"): ...`.
"""

import sys
from types import ModuleType


class _Callable(ModuleType):
    def __call__(self, *args, **kwargs):  # type: ignore[no-untyped-def]
        from strobe.record.api import record

        return record(*args, **kwargs)


sys.modules[__name__].__class__ = _Callable
