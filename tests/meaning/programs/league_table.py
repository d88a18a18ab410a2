"""A league of players: every round adds results to the table, puts it in order, and publishes the first hundred.

All results ever are kept and sorted with a key function each round, so rounds get slower and slower. Truth: 300 rounds
without outliers, a ramp; the gain is the measured time of `standings` beyond that of the first rounds (a table that keeps
its best hundred would stay at that).
"""

import random
import time

from truth import problem, tile, write


class Result:
    __slots__ = ("bonus", "player", "points", "when")

    def __init__(self, player, points, bonus, when):
        self.player, self.points, self.bonus, self.when = player, points, bonus, when


class League:
    def __init__(self, players):
        self.players = [f"player{i:03d}" for i in range(players)]
        self.form = dict.fromkeys(self.players, 0.0)
        self.results = []

    def play(self, when):
        for name in random.sample(self.players, 80):
            self.form[name] = 0.95 * self.form[name] + random.gauss(0, 1)
            self.results.append(Result(name, int(50 + 10 * self.form[name]), random.randrange(10), when))

    def standings(self):
        self.results.sort(key=lambda r: (-r.points, -r.bonus, r.when, r.player))
        return [(r.player, r.points + r.bonus) for r in self.results[:100]]


random.seed(4)
league = League(400)
took = []
cuts = [time.monotonic_ns()]
when = 0
while when < 300:
    league.play(when)
    a = time.monotonic_ns()
    top = league.standings()
    took.append(time.monotonic_ns() - a)
    when += 1
    if when % 100 == 0:
        print(when, top[0])
    cuts.append(time.monotonic_ns())

first = sorted(took[:10])[5]
assert len(league.results) == 24_000 and sum(took[-50:]) > 4 * sum(took[:50])
write(
    tile(cuts, "round"),
    unit="round",
    limiting="python",
    problem=problem(
        "all results are sorted anew each round, and there are more each round",
        "league_table.py:standings",
        "python",
        wasted_ns=sum(took) - 300 * first,
    ),
)
