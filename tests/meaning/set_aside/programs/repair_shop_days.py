"""A discrete-event simulation of machines that break and of the few mechanics that repair them, day by day.

Truth: 1200 days. Python is the limit. `earliest` goes through the whole calendar for each event; a heap would save nearly
all of it, about 95 % of its measured time.
"""

import random
import time
from collections import deque

from truth import problem, tile, write

MACHINES = 120
MECHANICS = 12
DAY = 24.0


class Shop:
    def __init__(self, seed):
        self.rng = random.Random(seed)
        self.clock = 0.0
        self.calendar = [(self.rng.expovariate(1 / 10), i, "break") for i in range(MACHINES)]
        self.waiting = deque()
        self.idle = MECHANICS
        self.down_since = {}
        self.downtime = 0.0
        self.repairs = 0
        self.events = 0
        self.searching = 0

    def earliest(self):
        best = None
        where = -1
        for k, entry in enumerate(self.calendar):
            if best is None or entry[0] < best[0]:
                best, where = entry, k
        return where, best

    def schedule(self, after, machine, kind):
        self.calendar.append((self.clock + after, machine, kind))

    def begin_repair(self, machine):
        self.idle -= 1
        self.schedule(self.rng.gammavariate(2, 0.3), machine, "repaired")

    def handle(self, machine, kind):
        if kind == "break":
            self.down_since[machine] = self.clock
            if self.idle:
                self.begin_repair(machine)
            else:
                self.waiting.append(machine)
        else:
            self.downtime += self.clock - self.down_since.pop(machine)
            self.repairs += 1
            self.idle += 1
            self.schedule(self.rng.expovariate(1 / 10), machine, "break")
            if self.waiting:
                self.begin_repair(self.waiting.popleft())

    def run_until(self, end):
        while True:
            t = time.monotonic_ns()
            where, event = self.earliest()
            self.searching += time.monotonic_ns() - t
            if event[0] > end:
                break
            del self.calendar[where]
            self.clock = event[0]
            self.handle(event[1], event[2])
            self.events += 1
        self.clock = end


def main():
    shop = Shop(17)
    cuts = [time.monotonic_ns()]
    for day in range(1, 1201):
        shop.run_until(day * DAY)
        cuts.append(time.monotonic_ns())
    print(f"{shop.events} events, {shop.repairs} repairs, mean downtime {shop.downtime / shop.repairs:.2f} h")
    assert shop.repairs > 1000
    write(
        tile(cuts, "day"),
        unit="day",
        limiting="python",
        levels={"event": shop.events},
        phases_ns={"calendar": shop.searching},
        problem=problem(
            "the next event is looked for by a pass over the whole calendar",
            "repair_shop_days.py:Shop.earliest",
            "python",
            wasted_ns=int(0.95 * shop.searching),
        ),
    )


main()
