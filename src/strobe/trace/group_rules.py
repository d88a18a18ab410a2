"""The user's own rules for what kernels do, from the file that STROBE_RULES names.

[kernels]
communication = ["^ring_exchange", "halo"]
compute = ["nccl_free_gemm"]

A kernel belongs to the group of the first regular expression that is found in its name, in any case. The rules are
applied when a trace is read: to recorded runs and to other tools' files, as often as they change.
"""

from __future__ import annotations

import os
import re
from functools import lru_cache

from strobe.errors import UsageError

VARIABLE = "STROBE_RULES"
_GROUPS = ("communication", "compute")
_EXAMPLE = '[kernels]\n  communication = ["^ring_exchange"]'

Rules = tuple[tuple[str, re.Pattern[str]], ...]


def group_by_rules(kernel: str) -> str | None:
    """Return the group that the user's rules give a kernel of this name; None if they have nothing about it."""
    path = os.environ.get(VARIABLE)
    rules = _rules(path, _changed_ns(path)) if path else ()
    return next((group for group, pattern in rules if pattern.search(kernel)), None)


def _changed_ns(path: str) -> int:
    try:
        return os.stat(path).st_mtime_ns
    except OSError:
        return 0


@lru_cache(maxsize=2)
def _rules(path: str, changed_ns: int) -> Rules:
    """Return groups and patterns in the order of the file. `changed_ns`: a changed file is read again."""
    import tomllib  # who has no rules need not wait for it

    try:
        with open(path, "rb") as stream:
            lists = tomllib.load(stream).get("kernels")
    except OSError as error:
        raise UsageError(f"the rules cannot be read: {error.strerror}", where=f"{VARIABLE}={path}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"the rules are not valid TOML: {error}", where=path) from None
    if not isinstance(lists, dict) or not lists:
        raise UsageError("the rules have no table [kernels]", where=path, do=_EXAMPLE)
    rules = []
    for group, patterns in lists.items():
        if group not in _GROUPS:
            raise UsageError(f"{group!r} is not a group of kernels: {' or '.join(_GROUPS)}", where=path, do=_EXAMPLE)
        if not isinstance(patterns, list) or not all(isinstance(each, str) for each in patterns):
            raise UsageError(f"{group} is not a list of texts", where=path, do=_EXAMPLE)
        for pattern in patterns:
            try:
                rules.append((group, re.compile(pattern, re.IGNORECASE)))
            except re.error as error:
                raise UsageError(f"{pattern!r} is not a regular expression: {error}", where=path) from None
    return tuple(rules)
