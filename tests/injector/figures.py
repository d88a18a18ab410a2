"""How right advice is: the sentences that a judge prints, and the table by rule that the reference has (figures.json).

A rule of which fewer than 80 % of at least five measured gains lay in the promised interval may not promise one.
"""

from __future__ import annotations

import json
import statistics
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

FILE = Path(__file__).parent / "figures.json"


@dataclass(frozen=True)
class Judged:
    """What was found about one case.

    place: of the first right finding, from 1 on, None if there is none; rule: its rule. interval: what the best right
    finding with a gain promises; gain: what the repair has brought; both as parts of the step. promises: rules that
    promise a gain for a healthy case.
    """

    name: str
    healthy: bool = False
    place: int | None = None
    rule: str = ""
    interval: tuple[float, float] | None = None
    gain: float | None = None
    promises: tuple[str, ...] = field(default=())

    @property
    def held(self) -> bool | None:
        """Whether the interval holds the gain; None where one of them is not known."""
        if self.interval is None or self.gain is None:
            return None
        return self.interval[0] <= self.gain <= self.interval[1]


def sentences(judged: Iterable[Judged]) -> str:
    """Return how often findings were right, as sentences."""
    all_ = list(judged)
    defects = [each for each in all_ if not each.healthy]
    first, three = (sum((each.place or 99) <= most for each in defects) for most in (1, 3))
    both = [(each, each.interval) for each in defects if each.held is not None]
    widths = [(at[1] - at[0]) / each.gain for each, at in both if at and each.gain and each.gain > 0]
    width = f", in the median {statistics.median(widths):.2f} times the gain wide" if widths else ""
    healthy = len(all_) - len(defects)
    return (
        f"Of {len(defects)} problems {first} are named first and {three} among three.\n"
        f"Of {len(both)} promised gains {sum(bool(each.held) for each, _ in both)} lie in the interval{width}.\n"
        f"Of {healthy} healthy ones {sum(bool(each.promises) for each in all_)} are promised a gain."
    )


def by_rule(judged: Iterable[Judged]) -> dict[str, dict[str, int]]:
    """Return counts by rule: right, first, three (among three), gains, held, and healthy cases with a promise."""
    found = dict[str, Counter[str]]()
    for each in judged:
        if each.rule:
            counts = found.setdefault(each.rule, Counter())
            counts["right"] += 1
            counts["first"] += each.place == 1
            counts["three"] += (each.place or 99) <= 3
            counts["gains"] += each.held is not None
            counts["held"] += each.held is True
        for rule in each.promises:
            found.setdefault(rule, Counter())["healthy"] += 1
    return {rule: dict(counts) for rule, counts in sorted(found.items())}


def write(kind: str, judged: Iterable[Judged]) -> None:
    """Keep the counts by rule of one set of cases (`programs`, `profiles aside`, ...) in figures.json."""
    all_ = json.loads(FILE.read_text(encoding="utf-8")) if FILE.exists() else {}
    all_[kind] = by_rule(judged)
    FILE.write_text(json.dumps(dict(sorted(all_.items())), indent=1) + "\n", encoding="utf-8")
