"""Passport control of an airport as a discrete-event simulation in plain Python: a heap of events, day after day.

Nothing is wrong: Python is what such a simulation is made of. Truth: 224 days of about 9000 passengers each; a step is
a simulated day; limited by Python.
"""

import heapq
import random
import statistics
import time
from collections import deque

from truth import tile, write

DAYS, DESKS, OPEN_MINUTES = 224, 14, 960
ARRIVE, LEAVE = 0, 1


class Control:
    def __init__(self, rng):
        self.rng = rng
        self.free = DESKS
        self.queue = deque()
        self.events = []
        self.waits = []
        self.serial = 0

    def schedule(self, at, what, passenger):
        self.serial += 1
        heapq.heappush(self.events, (at, self.serial, what, passenger))

    def serve(self, now, arrived):
        self.free -= 1
        self.waits.append(now - arrived)
        slow = self.rng.random() < 0.08
        self.schedule(now + self.rng.expovariate(1 / (4.0 if slow else 1.1)), LEAVE, None)

    def arrive(self, now):
        if self.free:
            self.serve(now, now)
        else:
            self.queue.append(now)

    def leave(self, now):
        self.free += 1
        if self.queue:
            self.serve(now, self.queue.popleft())

    def land(self, flights, passengers):
        for _ in range(flights):
            at = self.rng.uniform(0, OPEN_MINUTES)
            for _ in range(passengers):
                at += self.rng.expovariate(6)
                self.schedule(at, ARRIVE, None)

    def run(self):
        while self.events:
            now, _, what, _ = heapq.heappop(self.events)
            if what == ARRIVE:
                self.arrive(now)
            else:
                self.leave(now)


def simulate_day(day):
    control = Control(random.Random(day))
    control.land(flights=60, passengers=150)
    control.run()
    return statistics.fmean(control.waits), max(control.waits)


def main():
    means = []
    cuts = [time.monotonic_ns()]
    for day in range(DAYS):
        mean, worst = simulate_day(day)
        means.append(mean)
        if day % 7 == 6:
            print(f"week {day // 7 + 1}: mean wait {statistics.fmean(means[-7:]):.2f} min, worst today {worst:.0f} min")
        cuts.append(time.monotonic_ns())
    write(tile(cuts, "day"), unit="day", limiting="python")


if __name__ == "__main__":
    main()
