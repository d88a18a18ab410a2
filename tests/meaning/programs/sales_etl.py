"""Aggregates a big file of sales in chunks: read 50000 lines of CSV, group them by store and hour, append it.

Healthy: the file is in the page cache, the processor is busy all the time with pandas' native parsing, joining and
grouping; formatting the result is less than a third.
Truth: 56 chunks, limited by operators.
"""

import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd
from truth import tile, write

CHUNK = 50_000


def generate(path, chunks):
    rng = np.random.default_rng(4)
    with open(path, "w") as file:
        file.write("time,store,article,price,pieces\n")
        rows = rng.integers(0, 1440, CHUNK), rng.integers(1, 120, CHUNK), rng.integers(100, 9999, CHUNK)
        day = "".join(
            f"2024-01-01 {m // 60:02}:{m % 60:02},S{s:03},{a},{a / 70:.2f},{1 + a % 5}\n" for m, s, a in zip(*rows)
        )
        for i in range(chunks):
            file.write(day.replace("2024-01-01", f"2024-{1 + i // 28:02}-{1 + i % 28:02}"))


def summarise(chunk, articles):
    chunk = chunk.merge(articles, on="article")
    chunk["revenue"] = chunk["price"] * chunk["pieces"]
    chunk["margin"] = chunk["revenue"] - chunk["cost"] * chunk["pieces"]
    chunk["share"] = chunk["revenue"] / chunk.groupby("store")["revenue"].transform("sum")
    hours = chunk["time"].dt.floor("h")
    return chunk.groupby(["store", hours], as_index=False).agg(
        revenue=("revenue", "sum"),
        margin=("margin", "sum"),
        share=("share", "sum"),
        median=("price", "median"),
        articles=("article", "nunique"),
    )


def run(folder):
    source, target = folder / "sales.csv", folder / "hourly.csv"
    generate(source, 56)
    articles = pd.DataFrame({"article": np.arange(10000), "cost": np.arange(10000) / 90})
    sums = {"data": 0, "group": 0, "write": 0}
    cuts = [time.monotonic_ns()]
    with pd.read_csv(source, chunksize=CHUNK, parse_dates=["time"]) as reader, open(target, "w") as out:
        for chunk in reader:
            a = time.monotonic_ns()
            table = summarise(chunk, articles)
            b = time.monotonic_ns()
            table.to_csv(out, index=False, header=out.tell() == 0, float_format="%.4f")
            c = time.monotonic_ns()
            sums["data"] += a - cuts[-1]
            sums["group"] += b - a
            sums["write"] += c - b
            cuts.append(c)
    print(f"{target.stat().st_size} bytes of hourly sums")
    write(tile(cuts, "chunk"), unit="chunk", limiting="operators", phases_ns=sums)


with tempfile.TemporaryDirectory() as name:
    run(Path(name))
