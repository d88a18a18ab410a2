"""Call stacks as a table: every entry has a frame, and the entry that called it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from strobe.formats.reading.profile_import import ROOT, ProfileProcess


class PrefixTree:
    """The call paths of the entries of such a table, made as they are asked for.

    `caller_of` returns the entry that called one, None at the root; `regions_of` the regions of its frame and of those
    inlined in it, outermost first, none where it stands for its caller. Both are asked once for each entry; an entry
    that leads back to itself begins there (`frames_not_understood`).
    """

    def __init__(
        self,
        process: ProfileProcess,
        caller_of: Callable[[int], int | None],
        regions_of: Callable[[int], Sequence[int]],
    ) -> None:
        self._process, self._caller_of, self._regions_of = process, caller_of, regions_of
        self._paths: dict[int, int] = {}

    def path(self, entry: int) -> int:
        """Return the path of an entry, ROOT if neither it nor a caller of it has a frame."""
        chain: list[int] = []
        inside: set[int] = set()
        at: int | None = entry
        while at is not None and at not in self._paths:
            if at in inside:
                self._process.core.count("frames_not_understood")
                break
            chain.append(at)
            inside.add(at)
            at = self._caller_of(at)
        path = ROOT if at is None else self._paths.get(at, ROOT)
        for each in reversed(chain):
            for region in self._regions_of(each):
                path = self._process.path(path, region)
            self._paths[each] = path
        return self._paths[entry]
