"""Rumours spread between villagers, who remember each other (cycles of objects); a chronicle of all tellings is kept.

Truth: 120 days. `Village.end_of_day` calls gc.collect() "to keep memory low", which goes through everything that is
kept, though it finds nothing to free; that is most of the time. Its time was measured, without it the loop saves it.
"""

import gc
import random
import time
from dataclasses import dataclass, field

from truth import problem, tile, write


@dataclass(eq=False)
class Villager:
    name: str
    friends: list = field(default_factory=list, repr=False)
    heard: dict = field(default_factory=dict, repr=False)


@dataclass(eq=False)
class Telling:
    day: int
    teller: Villager
    listener: Villager
    rumour: str


class Village:
    def __init__(self, size, seed):
        self.rng = random.Random(seed)
        self.people = [Villager(f"villager {k}") for k in range(size)]
        for person in self.people:
            person.friends.extend(self.rng.sample(self.people, 12))
        self.chronicle = [
            Telling(-1, self.rng.choice(self.people), self.rng.choice(self.people), f"legend {k}") for k in range(60_000)
        ]
        self.collecting = 0

    def day(self, today):
        teller = self.rng.choice(self.people)
        teller.heard[f"rumour {today}"] = today
        for person in self.rng.sample(self.people, 900):
            for rumour, since in list(person.heard.items())[-3:]:
                friend = self.rng.choice(person.friends)
                if rumour not in friend.heard and today - since < 20:
                    friend.heard[rumour] = today
                    self.chronicle.append(Telling(today, person, friend, rumour))

    def end_of_day(self):
        before = time.monotonic_ns()
        gc.collect()
        self.collecting += time.monotonic_ns() - before


def main():
    village = Village(4000, seed=8)
    cuts = [time.monotonic_ns()]
    for today in range(120):
        village.day(today)
        village.end_of_day()
        cuts.append(time.monotonic_ns())
    print(len(village.chronicle), "tellings")
    write(
        tile(cuts, "day"),
        unit="day",
        limiting="garbage-collection",
        phases_ns={"collection": village.collecting},
        problem=problem(
            "a full collection every day", "village_gossip.py:Village.end_of_day", "garbage-collection",
            wasted_ns=village.collecting,
        ),
    )  # fmt: skip


main()
