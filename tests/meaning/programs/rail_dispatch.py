"""Replays the log of a railway station: lines are grouped by the hour, trains take tracks and leave them.

Written with generators and `itertools.groupby`. Planted: `note` makes a pretty picture of the whole yard (`pformat`)
for a debug message at each departure, though the log level is INFO and nobody ever sees it. Truth: 672 hours (28
days), of which those at night have fewer trains and are shorter by nature; events are the inner level. Limited by
Python, in `pformat`, which `note` calls. The gain is the measured time of `note`, all of it in vain but for a check
of the level.
"""

import logging
import random
import re
from collections import Counter, defaultdict
from itertools import groupby
from pprint import pformat
from time import monotonic_ns

from truth import problem, tile, write

log = logging.getLogger("dispatch")
LINE = re.compile(r"(\d+)\.(\d\d):(\d\d) (\S+) (arrives|departs)(?: from (\w+))?")
DAYS, TRACKS = 28, 9
CITIES = ["Basel", "Bern", "Chur", "Genf", "Olten", "Thun", "Visp", "Zug"]
times = {"apply": 0, "note": 0}


def made_up_log(rng):
    """A log as the station's computer writes it, in order of time."""
    events = []
    for day in range(DAYS):
        for hour in range(24):
            for _ in range(16 if 6 <= hour < 22 else 5):
                train = f"{rng.choice(['IC', 'IR', 'S'])}{rng.randrange(100, 9999)}"
                begin = (day * 24 + hour) * 60 + rng.randrange(60)
                events.append((begin, f"{train} arrives from {rng.choice(CITIES)}"))
                events.append((begin + rng.randrange(2, 25), f"{train} departs"))
    for minute, text in sorted(events):
        if minute < DAYS * 1440:
            yield f"{minute // 1440}.{minute // 60 % 24:02d}:{minute % 60:02d} {text}"


def parse(lines):
    for line in lines:
        if match := LINE.fullmatch(line):
            day, hour, minute, train, what, city = match.groups()
            yield int(day) * 24 + int(hour), int(minute), train, what, city


class Yard:
    def __init__(self):
        self.tracks = {f"track {n}": [] for n in range(1, TRACKS + 1)}
        self.where = {}
        self.late = Counter()

    def arrive(self, hour, minute, train, city):
        name = min(self.tracks, key=lambda track: len(self.tracks[track]))
        self.tracks[name].append({"train": train, "from": city, "since": (hour, minute)})
        self.where[train] = name

    def depart(self, hour, minute, train):
        if name := self.where.pop(train, None):
            standing = next(entry for entry in self.tracks[name] if entry["train"] == train)
            self.tracks[name].remove(standing)
            since = standing["since"]
            stay = (hour - since[0]) * 60 + minute - since[1]
            self.late["long" if stay > 20 else "usual" if stay > 5 else "short"] += 1


def note(yard, train):
    log.debug("after %s the yard is\n%s", train, pformat({"tracks": yard.tracks, "where": yard.where}, width=60))


def replay(lines):
    yard, per_hour, cuts = Yard(), defaultdict(Counter), [monotonic_ns()]
    for hour, events in groupby(parse(lines), key=lambda event: event[0]):
        for _, minute, train, what, city in events:
            t0 = monotonic_ns()
            if what == "arrives":
                yard.arrive(hour, minute, train, city)
            else:
                yard.depart(hour, minute, train)
            t1 = monotonic_ns()
            times["apply"] += t1 - t0
            if what == "departs":
                note(yard, train)
                times["note"] += monotonic_ns() - t1
            per_hour[hour % 24][what] += 1
        if hour % 24 == 23:
            log.info("day %d over: %d trains still here, stays %s", hour // 24 + 1, len(yard.where), dict(yard.late))
        cuts.append(monotonic_ns())
    return cuts, per_hour


def main():
    logging.basicConfig(level=logging.INFO, format="%(name)s: %(message)s")
    lines = list(made_up_log(random.Random(5)))
    cuts, per_hour = replay(lines)
    for hour, counts in sorted(per_hour.items()):
        print(f"{hour:02d}h  {counts['arrives']:4d} in  {counts['departs']:4d} out")
    write(
        tile(cuts, "hour"),
        unit="hour",
        limiting="python",
        levels={"event": sum(counts.total() for counts in per_hour.values()), "day": DAYS},
        phases_ns=times,
        problem=problem(
            "the yard is printed into debug messages that nobody sees", "rail_dispatch.py:note", "python",
            wasted_ns=times["note"],
        ),
    )  # fmt: skip


if __name__ == "__main__":
    main()
