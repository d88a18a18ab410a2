"""A nightly job: files of sales are read in chunks, cleaned, joined with a table of shops and written to a database,
with a commit after each file; bad lines are counted, one file is broken.
"""

import csv
import gzip
import itertools
import logging
import os
import random
import sqlite3
import sys
import tempfile
import time
from collections import Counter, defaultdict
from datetime import date, timedelta
from pathlib import Path

log = logging.getLogger("sales")
CHUNK = 150
files, chunks = [], []


def write_inputs(folder, count, seed):
    rng = random.Random(seed)
    for number in range(count):
        day = date(2024, 1, 1) + timedelta(days=number)
        with gzip.open(folder / f"sales-{day}.csv.gz", "wt", newline="", compresslevel=1) as out:
            writer = csv.writer(out)
            writer.writerow(["id", "shop", "article", "amount", "price", "when"])
            for row in range(rng.randint(300, 900)):
                price = "n/a" if rng.random() < 0.02 else f"{rng.uniform(1, 90):.2f}"
                when = f"{day}T{rng.randrange(24):02d}:{rng.randrange(60):02d}:00"
                writer.writerow([f"{number}-{row}", rng.randrange(40), f" art-{rng.randrange(500)} ", 1, price, when])
    (folder / "sales-2024-03-00.csv.gz").write_bytes(b"\x1f\x8b broken")


def extract(path):
    with gzip.open(path, "rt", newline="") as lines:
        yield from csv.DictReader(lines)


def batched(rows, size):
    rows = iter(rows)
    while batch := list(itertools.islice(rows, size)):
        yield batch


def clean(row):
    return {
        "id": row["id"],
        "shop": int(row["shop"]),
        "article": row["article"].strip().upper(),
        "amount": int(row["amount"]),
        "cents": round(100 * float(row["price"])),
        "hour": int(row["when"][11:13]),
    }


class Warehouse:
    def __init__(self, path):
        self.connection = sqlite3.connect(path)
        self.connection.executescript(
            "CREATE TABLE sale (id TEXT PRIMARY KEY, region TEXT, article TEXT, amount INT, cents INT, hour INT);"
            "CREATE TABLE hourly (region TEXT, hour INT, cents INT, PRIMARY KEY (region, hour));"
        )

    def load(self, rows):
        self.connection.executemany(
            "INSERT OR REPLACE INTO sale VALUES (:id, :region, :article, :amount, :cents, :hour)", rows
        )
        sums = defaultdict(int)
        for row in rows:
            sums[row["region"], row["hour"]] += row["amount"] * row["cents"]
        self.connection.executemany(
            "INSERT INTO hourly VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET cents = cents + excluded.cents",
            [(*key, cents) for key, cents in sums.items()],
        )

    def report(self):
        return self.connection.execute(
            "SELECT region, SUM(cents) / 100 FROM hourly GROUP BY region ORDER BY 2 DESC"
        ).fetchall()


def process(path, regions, warehouse, bad):
    loaded = 0
    for rows in batched(extract(path), CHUNK):
        chunks.append(time.monotonic_ns())
        kept = []
        for row in rows:
            try:
                row = clean(row)
            except ValueError as error:
                bad[type(error).__name__] += 1
                continue
            row["region"] = regions.get(row["shop"], "unknown")
            kept.append(row)
        warehouse.load(kept)
        loaded += len(kept)
    return loaded


def main():
    logging.basicConfig(level=logging.INFO, stream=sys.stdout, format="%(levelname)s %(message)s")
    regions = {shop: ("north", "south", "east")[shop % 3] for shop in range(38)}
    bad = Counter()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_inputs(folder, count=48, seed=64)
        warehouse = Warehouse(folder / "sales.db")
        for path in sorted(folder.glob("*.csv.gz")):
            files.append(time.monotonic_ns())
            try:
                loaded = process(path, regions, warehouse, bad)
            except (OSError, EOFError) as error:
                log.error("%s: %s", path.name, error)
                warehouse.connection.rollback()
                continue
            warehouse.connection.commit()
            log.info("%s: %d rows", path.name, loaded)
        for region, total in warehouse.report():
            log.info("%s: %d", region, total)
        log.info("bad lines: %s", dict(bad))
    # A chunk is what the job is made of; the log, and who waits for it, count files, which differ in size only.
    with open(os.path.join(os.environ["CORPUS_TRUTH"], str(os.getpid())), "w") as out:
        out.writelines(f"chunk {ns}\n" for ns in chunks)
        out.writelines(f"file {ns}\n" for ns in files)


if __name__ == "__main__":
    main()
