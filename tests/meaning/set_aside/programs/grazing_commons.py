"""Sheep on a common: plain Python agents that eat, walk to better grass, lamb and starve; grass grows back.

The days are a generator method of `Common`, a shepherd in `main` takes 160 of them by `islice`; every 40th day is a
shearing, with a count by age. Planted: `is_free` goes through the whole flock to see whether somebody stands at a
place, for four places of each sheep and day; a set of places would do. Truth: 160 days, sheep are the inner level;
limited by Python, in `is_free`. The gain is the measured time of `is_free` less that of as many look-ups in a set,
measured after the loop on the last flock.
"""

import random
from collections import Counter
from itertools import islice
from time import monotonic_ns

from truth import problem, tile, write

SIDE, FLOCK, DAYS, SHEARING = 48, 330, 160, 40
AROUND = ((1, 0), (0, 1), (-1, 0), (0, -1))


class Sheep:
    def __init__(self, place, age=0, fat=6.0):
        self.place, self.age, self.fat, self.wool = place, age, fat, 0.0

    def eat(self, grass):
        bite = min(1.0, grass[self.place])
        grass[self.place] -= bite
        self.fat = min(12.0, self.fat + bite - 0.55)
        self.wool += 0.02 * bite
        self.age += 1


class Common:
    def __init__(self, rng):
        self.rng = rng
        self.grass = {(x, y): rng.random() * 3 for x in range(SIDE) for y in range(SIDE)}
        places = rng.sample(list(self.grass), FLOCK)
        self.flock = [Sheep(place, rng.randrange(900)) for place in places]
        self.spent = {"look": 0, "grow": 0}
        self.asked = 0

    def is_free(self, place):
        for sheep in self.flock:
            if sheep.place == place:
                return False
        return True

    def walk(self, sheep):
        x, y = sheep.place
        best, most = sheep.place, self.grass[sheep.place]
        for dx, dy in AROUND:
            there = (x + dx) % SIDE, (y + dy) % SIDE
            t = monotonic_ns()
            free = self.is_free(there)
            self.spent["look"] += monotonic_ns() - t
            self.asked += 1
            if free and self.grass[there] > most:
                best, most = there, self.grass[there]
        sheep.place = best

    def lambing(self):
        mothers = [s for s in self.flock if s.fat > 9 and s.age > 300 and len(self.flock) < 1.1 * FLOCK]
        for mother in self.rng.sample(mothers, min(3, len(mothers))):
            x, y = mother.place
            if self.is_free(((x + 1) % SIDE, y)):
                self.flock.append(Sheep(((x + 1) % SIDE, y)))
                mother.fat -= 4

    def grow(self):
        for place, height in self.grass.items():
            self.grass[place] = min(4.0, height + 0.09 * (1.2 - height / 4))

    def days(self):
        while self.flock:
            for sheep in self.flock:
                sheep.eat(self.grass)
                self.walk(sheep)
            self.lambing()
            self.flock = [sheep for sheep in self.flock if sheep.fat > 0]
            t = monotonic_ns()
            self.grow()
            self.spent["grow"] += monotonic_ns() - t
            yield len(self.flock)


def shear(common):
    wool = sum(sheep.wool for sheep in common.flock)
    for sheep in common.flock:
        sheep.wool = 0.0
    ages = Counter(sheep.age // 365 for sheep in common.flock)
    return f"{wool:.1f} kg of wool, years {dict(sorted(ages.items()))}"


def main():
    common = Common(random.Random(21))
    chronicle, cuts = [], [monotonic_ns()]
    for size in islice(common.days(), DAYS):
        chronicle.append(size)
        if len(chronicle) % SHEARING == 0:
            print(f"day {len(chronicle)}: {size} sheep, {shear(common)}")
        cuts.append(monotonic_ns())
    print("smallest flock:", min(chronicle), "largest:", max(chronicle))

    taken, places, look = {s.place for s in common.flock}, list(common.grass) * 40, 0
    for place in places:
        t = monotonic_ns()
        place not in taken
        look += monotonic_ns() - t
    write(
        tile(cuts, lambda i: "day" if (i + 1) % SHEARING else "day+shearing"),
        unit="day",
        limiting="python",
        levels={"look": common.asked},
        phases_ns=common.spent,
        problem=problem(
            "the whole flock is searched for who stands at a place", "grazing_commons.py:is_free", "python",
            wasted_ns=common.spent["look"] - look * common.asked // len(places),
        ),
    )  # fmt: skip


if __name__ == "__main__":
    main()
