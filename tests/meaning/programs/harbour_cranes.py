"""A container harbour, minute by minute: ships, cranes and trucks are generators, resumed in turn by a small scheduler.

Each agent is a state machine written as a generator that yields until what it waits for has come; the scheduler
resumes every living agent once a minute. Three weathers are simulated one after the other, each of 500 minutes.
Healthy: Python is what such a model is made of. Truth: 1500 minutes, which are the steps (each about as long as the
other, as the harbour is always full), 3 weathers around them; limited by Python. Building a harbour belongs to its
first minute and is little.
"""

import random
import time
from collections import Counter, deque

from truth import tile, write

MINUTES = 500


class Scheduler:
    """Resumes each task once per tick, in the order in which they came; those that return are forgotten."""

    def __init__(self):
        self.tasks, self.finished = deque(), 0

    def spawn(self, task):
        self.tasks.append(task)

    def tick(self):
        for _ in range(len(self.tasks)):
            task = self.tasks.popleft()
            try:
                next(task)
            except StopIteration:
                self.finished += 1
            else:
                self.tasks.append(task)


class Harbour:
    def __init__(self, weather, slowness, berths=240, trucks=3300, seed=9):
        self.rng = random.Random(seed)
        self.weather, self.slowness = weather, slowness
        self.scheduler = Scheduler()
        self.berths, self.yard = deque(range(berths)), deque()
        self.quay = [deque() for _ in range(berths)]
        self.log, self.minute, self.waits = Counter(), 0, []
        for _ in range(570):
            self.scheduler.spawn(self.ship())
        for berth in range(berths):
            for _ in range(3):
                self.scheduler.spawn(self.crane(berth))
        for number in range(trucks):
            self.scheduler.spawn(self.truck(number))

    def ship(self):
        arrived, load = self.minute, self.rng.randrange(60, 180)
        while not self.berths:
            self.log["ship at anchor"] += 1
            yield
        berth = self.berths.popleft()
        self.waits.append(self.minute - arrived)
        for _ in range(self.slowness):
            self.log["ship berthing"] += 1
            yield
        hold = self.quay[berth]
        hold.extend((berth, number) for number in range(load))
        while hold:
            self.log["ship unloading"] += 1
            yield
        self.berths.append(berth)
        self.scheduler.spawn(self.ship())

    def crane(self, berth):
        hold = self.quay[berth]
        while True:
            while not hold:
                self.log["crane idle"] += 1
                yield
            box = hold.popleft()
            for _ in range(1 + self.slowness // 4):
                self.log["crane lifting"] += 1
                yield
            self.yard.append(box)

    def truck(self, number):
        fuel = 200 + number % 100
        while True:
            if not self.yard:
                self.log["truck waiting"] += 1
                yield
                continue
            berth, _ = self.yard.popleft()
            way = 20 + berth % 7 + self.slowness
            while way > 0:
                way -= self.rng.choice((1, 1, 2))
                fuel -= 1
                self.log["truck driving"] += 1
                yield
            if fuel < 60:
                for _ in range(5):
                    self.log["truck filling up"] += 1
                    yield
                fuel = 300
            self.log["delivered"] += 1

    def advance(self):
        self.scheduler.tick()
        self.minute += 1
        if self.minute % 125 == 0:
            boxes = self.log["delivered"]
            print(f"{self.weather:>6} {self.minute:4d} min: {boxes} boxes, {len(self.yard)} in the yard")


def main():
    cuts, results = [time.monotonic_ns()], {}
    for weather, slowness in {"calm": 4, "windy": 8, "storm": 16}.items():
        harbour = Harbour(weather, slowness)
        for _ in range(MINUTES):
            harbour.advance()
            cuts.append(time.monotonic_ns())
        results[weather] = harbour.log["delivered"], sum(harbour.waits) / len(harbour.waits)
    for weather, (boxes, wait) in results.items():
        print(f"{weather}: {boxes} boxes, ships waited {wait:.0f} minutes")
    write(tile(cuts, "minute"), unit="minute", limiting="python", levels={"weather": 3})


if __name__ == "__main__":
    main()
