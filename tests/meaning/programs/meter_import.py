"""Imports gzipped CSV files of electricity meters into SQLite, with a check of each row.

Truth: 40 files of 10 rows, each a step. `store` commits after every row, and each commit waits for the disk; the same
files with one commit per file, measured afterwards into a second database, show what that would save. Files are small,
so reading them is little.
"""

import csv
import gzip
import random
import sqlite3
import tempfile
import time
from contextlib import closing
from pathlib import Path

from truth import problem, tile, write

FILES, ROWS = 40, 10
committing = 0


def make(folder):
    rng = random.Random(9)
    for day in range(FILES):
        with gzip.open(folder / f"meters-{day:03d}.csv.gz", "wt", newline="") as out:
            table = csv.writer(out)
            table.writerow(["meter", "day", "kwh"])
            table.writerows([f"M{rng.randrange(500):04d}", day, f"{rng.gammavariate(4, 2.5):.3f}"] for _ in range(ROWS))


def connect(path):
    db = sqlite3.connect(path)
    db.execute("PRAGMA synchronous = FULL")
    db.execute("CREATE TABLE reading (meter TEXT, day INTEGER, kwh REAL)")
    db.commit()
    return db


def rows(path):
    with gzip.open(path, "rt", newline="") as lines:
        for row in csv.DictReader(lines):
            kwh = float(row["kwh"])
            if kwh > 0:
                yield row["meter"], int(row["day"]), kwh


def store(db, row):
    global committing
    db.execute("INSERT INTO reading VALUES (?, ?, ?)", row)
    before = time.monotonic_ns()
    db.commit()
    committing += time.monotonic_ns() - before


def main():
    with tempfile.TemporaryDirectory(dir=".") as name:
        folder = Path(name)
        make(folder)
        paths = sorted(folder.glob("*.csv.gz"))
        with closing(connect(folder / "readings.db")) as db:
            cuts = [time.monotonic_ns()]
            for path in paths:
                for row in rows(path):
                    store(db, row)
                cuts.append(time.monotonic_ns())
            print(db.execute("SELECT count(*), sum(kwh) FROM reading").fetchone())
        with closing(connect(folder / "again.db")) as db:
            began = time.monotonic_ns()
            for path in paths:
                with db:
                    db.executemany("INSERT INTO reading VALUES (?, ?, ?)", rows(path))
            better = time.monotonic_ns() - began
    write(
        tile(cuts, "file"),
        unit="file",
        limiting="io",
        levels={"row": FILES * ROWS},
        phases_ns={"commit": committing},
        problem=problem(
            "a commit after every row", "meter_import.py:store", "io", wasted_ns=cuts[-1] - cuts[0] - better
        ),
    )


if __name__ == "__main__":
    main()
