"""A fleet of vehicles is simulated; each tick's whole state goes to a journal as indented JSON, flushed at once.

Making the JSON (in Python, as it is indented) is most of the time, writing and flushing little. Truth: 400 ticks; the limit
is python; the gain is the measured time of `dumps` and writing, less that of a compact line every 10th tick, tried after
the loop.
"""

import json
import tempfile
import time

import numpy as np
from truth import problem, tile, write


class Journal:
    def __init__(self, file):
        self.file = file
        self.encoding = self.writing = 0

    def record(self, entry):
        a = time.monotonic_ns()
        text = json.dumps(entry, indent=2, sort_keys=True)
        b = time.monotonic_ns()
        self.file.write(text + "\n")
        self.file.flush()
        self.encoding += b - a
        self.writing += time.monotonic_ns() - b


class Fleet:
    def __init__(self, n, rng):
        self.rng = rng
        self.where, self.speed = rng.uniform(0, 1000, (n, 2)), rng.normal(size=(n, 2))
        self.fuel = np.full(n, 100.0)

    def advance(self):
        for _ in range(3):
            d = self.where[:, None] - self.where
            near = np.exp(-(d * d).sum(-1) / 500)
            self.speed += 0.1 * (near[..., None] * d).sum(1) / 100 + 0.05 * self.rng.normal(size=self.speed.shape)
            self.where = (self.where + 0.1 * self.speed) % 1000
            self.fuel -= 0.001 * np.linalg.norm(self.speed, axis=1)

    def state(self, tick):
        return {
            "tick": tick,
            "vehicles": [
                {
                    "id": f"v{k:03d}",
                    "position": {"x": round(x, 3), "y": round(y, 3)},
                    "speed": {"x": vx, "y": vy},
                    "tank": {"fuel": fuel, "low": fuel < 20},
                    "tyres": [{"n": n, "bar": 2.2 - 0.001 * n} for n in range(4)],
                }
                for k, ((x, y), (vx, vy), fuel) in enumerate(
                    zip(self.where.tolist(), self.speed.tolist(), self.fuel.tolist(), strict=True)
                )
            ],
        }


def main():
    fleet = Fleet(100, np.random.default_rng(8))
    with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as file:
        journal = Journal(file)
        cuts = [time.monotonic_ns()]
        for tick in range(400):
            fleet.advance()
            journal.record(fleet.state(tick))
            cuts.append(time.monotonic_ns())
        encoding, writing = journal.encoding, journal.writing
        entry = fleet.state(400)
        a = time.monotonic_ns()
        for _ in range(40):
            file.write(json.dumps(entry) + "\n")
            file.flush()
        better = time.monotonic_ns() - a
    loop = cuts[-1] - cuts[0]
    print(f"json {encoding / loop:.0%}, writing {writing / loop:.0%}, then {better / loop:.1%}")
    assert encoding > 0.5 * loop and writing < 0.2 * loop
    write(
        tile(cuts, "tick"),
        unit="tick",
        limiting="python",
        phases_ns={"encoding": encoding, "writing": writing},
        problem=problem(
            "the whole state is made indented JSON every tick",
            "fleet_telemetry.py:record",
            "python",
            wasted_ns=encoding + writing - better,
        ),
    )


if __name__ == "__main__":
    main()
