"""Ridership of a bus network: a folder tree (year/month/day.csv) is walked, each day's taps are grouped with pandas.

There is no plain loop: `Ridership.walk` calls itself for folders and `Ridership.day` for files. Planted: `day` calls
`load_stops`, which reads the same table of 60,000 stops from its CSV file for every day; reading it once would do.
Truth: 110 days, each a step, limited by data (parsing is native: one may say operators). `data` is reading taps and
stops; the gain is the measured time of all calls of `load_stops` but the first.
"""

import random
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd
from truth import problem, tile, write

STOPS, DAYS = 60000, 110


def make_network(folder):
    rng = np.random.default_rng(30)
    names = random.Random(30)
    streets = ["Mill", "Station", "Harbour", "Church", "Orchard", "Quarry", "Bridge"]
    stops = pd.DataFrame({
        "stop": np.arange(STOPS),
        "name": [f"{names.choice(streets)} {names.choice(['Road', 'Lane', 'Square'])} {k % 97}" for k in range(STOPS)],
        "zone": rng.integers(1, 9, STOPS),
        "latitude": rng.normal(51.5, 0.1, STOPS).round(6),
        "longitude": rng.normal(-0.1, 0.2, STOPS).round(6),
        "shelter": rng.random(STOPS) < 0.4,
    })  # fmt: skip
    stops.to_csv(folder / "stops.csv", index=False)
    taps = pd.DataFrame({
        "stop": rng.integers(0, STOPS, 3000),
        "line": rng.integers(1, 60, 3000),
        "minute": np.sort(rng.integers(300, 1440, 3000)),
        "fare": rng.choice([150, 280, 0], 3000),
    })  # fmt: skip
    body = taps.to_csv(index=False).splitlines(keepends=True)
    for day in range(DAYS):
        month = folder / "2023" / f"{day // 30 + 1:02d}"
        month.mkdir(parents=True, exist_ok=True)
        (month / f"{day % 30 + 1:02d}.csv").write_text(body[0] + "".join(body[1 + day : 2700 + 2 * day % 300]))


class Ridership:
    def __init__(self, root):
        self.root = root
        self.by_zone, self.busiest = [], []
        self.cuts, self.data, self.loads = [], 0, []

    def load_stops(self):
        t = time.monotonic_ns()
        stops = pd.read_csv(self.root / "stops.csv", index_col="stop")
        self.loads.append(time.monotonic_ns() - t)
        return stops

    def day(self, path):
        taps = pd.read_csv(path)
        stops = self.load_stops()
        self.data += time.monotonic_ns() - self.cuts[-1]
        taps["hour"] = taps["minute"] // 60
        taps = taps.join(stops[["name", "zone"]], on="stop")
        zones = taps.groupby(["zone", "hour"]).agg(taps=("fare", "size"), fares=("fare", "sum")).reset_index()
        zones["day"] = "-".join([*path.parts[-3:-1], path.stem])
        lines = taps.groupby("line")["fare"].agg(["size", "mean"])
        self.busiest.append((zones["day"].iat[0], lines["size"].idxmax(), int(lines["size"].max())))
        self.by_zone.append(zones)
        self.cuts.append(time.monotonic_ns())

    def walk(self, folder):
        for entry in sorted(folder.iterdir()):
            if entry.is_dir():
                self.walk(entry)
            elif entry.suffix == ".csv" and entry.parent != self.root:
                self.day(entry)


def main(folder):
    make_network(folder)
    ridership = Ridership(folder)
    ridership.cuts.append(time.monotonic_ns())
    ridership.walk(folder)
    table = pd.concat(ridership.by_zone).pivot_table(index="zone", columns="hour", values="taps", aggfunc="sum")
    print(table.iloc[:, 2:6])
    print(*max(ridership.busiest, key=lambda entry: entry[2]))
    write(
        tile(ridership.cuts, "day"),
        unit="day",
        limiting="data",
        limiting_also=["operators"],
        phases_ns={"data": ridership.data},
        problem=problem(
            "the table of stops is read again for every day",
            "bus_ridership.py:Ridership.load_stops",
            "data",
            wasted_ns=sum(ridership.loads[1:]),
        ),
    )


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        main(Path(place))
