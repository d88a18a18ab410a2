"""Python calls: every call of the user's own functions, by a C hook.

CPython 3.11: a frame evaluation function (PEP 523); 3.12 and later: sys.monitoring (PEP 669) with C callbacks. Not
recorded by default: the standard library, installed packages, and everything that runs because of an import.
`--include`, `--exclude` and `--filter` change that, `--include-imports` as well; `--trace +c_calls` records C
functions, too.
"""

from __future__ import annotations

import os
import sys

import strobe
from strobe.model.option import yes_or_no
from strobe.native import core
from strobe.record.adapter import Hooks
from strobe.record.options.filters import PATH, rules_of
from strobe.record.options.session_settings import Session
from strobe.record.program import greenlets


class _PythonCalls(Hooks):
    needs_gil = "Python calls are not recorded"

    def start(self, settings: Session) -> None:
        library = os.path.dirname(os.__file__)
        excluded = {
            os.path.join(library, ""),
            *(os.path.join(prefix, "lib", "") for prefix in (sys.prefix, sys.base_prefix)),
            os.path.join(os.path.dirname(strobe.__file__), ""),
            os.path.join(os.path.expanduser("~"), ".local", "lib", ""),
        }
        excluded |= {os.path.join(path, "") for path in sys.path if path.endswith(("site-packages", "dist-packages"))}
        if settings.attached:  # what the program was asked to run
            excluded.add(os.path.join(settings.folder, ""))
        rules = rules_of(settings.options)
        if rules:  # the recorder itself is never recorded
            rules.append((PATH, False, os.path.dirname(strobe.__file__)))
        core.python_calls_start(
            sorted(excluded),
            rules,
            strings=settings.strings,
            imports=yes_or_no(settings.options.get("include-imports", "no")),
            c_functions="c_calls" in settings.adapters,
            whole_stacks=settings.attached,
        )
        greenlets.start()

    def stop(self) -> None:
        greenlets.stop()
        core.python_calls_stop()


HOOKS = _PythonCalls()
