"""What if? The changes that can be asked for, and how they are written."""

from __future__ import annotations

import re
from typing import NamedTuple

from strobe.errors import InconclusiveError, UsageError

WORDS = {
    "no-launch": "work of GPUs needs no launch of its own, as in a graph",
    "no-sync": "no call waits for a GPU",
    "async-copies": "no call waits for a copy",
    "no-copies": "copies take no time",
    "no-straggler": "what a rank calls takes what the median of the ranks takes for it",
    "half": "products, convolutions and elementwise kernels compute in 16 bits instead of float32",
    "overlap": "collectives run beside computation",
    "fuse=PATTERN": "elementwise kernels that follow each other, in what the pattern matches, are one",
    "merge=PATTERN": "equal matrix products that follow each other, in what the pattern matches, are one",
    "ranks=2x": "so many times the ranks, each of which computes what one computes now",
    "workers=4": "so many worker processes of the data loader, 0 for none",
    "prefetch=4": "so many batches that each worker makes ahead (DataLoader's prefetch_factor)",
}
# Those that are asked of the data loader alone.
OF_LOADER = ("workers", "prefetch")
# Those that bring other kernels, or other neighbours: their gains are less sure than their formulas.
UNSURE = ("half", "fuse", "merge", "overlap", "workers")


class Change(NamedTuple):
    """What if the time of a kind, or of regions whose names match a pattern, were multiplied by a factor?

    What is not sure has two: from `least` to `most`. word: one of WORDS, without what follows its `=`; "" for a factor.
    A word's number is both `least` and `most`.
    """

    word: str
    pattern: str
    least: float
    most: float


_NUMBER = r"(\d+\.?\d*|\.\d+)"
_CHANGE = re.compile(rf"\s*(\S.*?)\s*=\s*{_NUMBER}(?:\s*\.\.\s*{_NUMBER})?\s*(?:,|$)")
_ALONE = "|".join(each for each in WORDS if "=" not in each)
_WORD = re.compile(
    rf"\s*(?:(?P<alone>{_ALONE})|(?P<of>fuse|merge)=(?P<pattern>[^,]*[^,\s])"
    r"|(?P<count>workers|prefetch)=(?P<number>\d+)|(?P<times>ranks)=(?P<factor>[1-9]\d*)x)\s*(?:,|$)"
)


def changes(text: str, option: str = "--what-if") -> list[Change]:
    """Read what-if: `nccl*=0.5`, `gemm*=0.4..0.6`, `launch=0`, `no-sync`, `fuse=*gelu*`, several with commas.

    Raises UsageError for anything else.
    """
    found, at = [], 0
    while at < len(text):
        if each := _WORD.match(text, at):
            word = each["alone"] or each["of"] or each["count"] or each["times"]
            number = float(each["number"] or each["factor"] or 0)
            found.append(Change(word, each["pattern"] or "", number, number))
        elif each := _CHANGE.match(text, at):
            least, most = sorted((float(each[2]), float(each[3] or each[2])))
            found.append(Change("", each[1], least, most))
        else:
            known = f"PATTERN=FACTOR: 'nccl*=0.5,launch=0'; or one of: {', '.join(WORDS)}"
            raise UsageError(f"{option}: '{text[at:]}' is not a change", do=known)
        at = each.end()
    if len({each.word in OF_LOADER for each in found}) > 1:
        raise UsageError(f"{option}: workers and prefetch are asked for alone", do="Leave the other changes out")
    return found


def unknown(why: str) -> InconclusiveError:
    """Return the error for a change whose effect a trace does not show; why: what it lacks."""
    return InconclusiveError(f"cannot be known from this trace: {why}")
