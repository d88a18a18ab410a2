"""Hourly files of rain gauges: a generator reads them with pandas, hours are judged one by one, days summed up.

Truth: 36 files, limited by python: `judge` is applied row by row. The same rules on whole columns are measured after the loop on the
same hours; the difference is the gain.
"""

import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd
from truth import problem, tile, write


def write_files(folder, files, hours=2880):
    rng = np.random.default_rng(17)
    when = pd.date_range("2021-01-01", periods=hours, freq="h")
    for i in range(files):
        rain = np.round(rng.gamma(0.2, 3.0, hours), 1)
        rain[rng.random(hours) < 0.02] = -999
        frame = pd.DataFrame({"time": when, "rain": rain, "temperature": np.round(rng.normal(6, 8, hours), 1), "battery": rng.uniform(10, 13, hours)})
        frame.to_csv(folder / f"gauge_{i:02d}.csv", index=False)


def read_gauges(folder):
    for path in sorted(folder.glob("gauge_*.csv")):
        frame = pd.read_csv(path, parse_dates=["time"])
        yield path.stem, frame


def judge(row):
    if row["rain"] < 0:
        return "missing"
    if row["battery"] < 10.5:
        return "doubtful"
    if row["temperature"] < 1 and row["rain"] > 0:
        return "snow"
    if row["rain"] > 10:
        return "cloudburst"
    return "rain" if row["rain"] > 0.1 else "dry"


def judge_columns(frame):
    """What it should be; only measured."""
    rain, cold = frame["rain"], frame["temperature"] < 1
    rules = [rain < 0, frame["battery"] < 10.5, cold & (rain > 0), rain > 10, rain > 0.1]
    return np.select(rules, ["missing", "doubtful", "snow", "cloudburst", "rain"], "dry")


def main(folder):
    write_files(folder, 36)
    days, kinds, kept = [], {}, []
    reading = judging = 0
    cuts = [time.monotonic_ns()]
    for name, frame in read_gauges(folder):
        t0 = time.monotonic_ns()
        frame["kind"] = frame.apply(judge, axis=1)
        t1 = time.monotonic_ns()
        good = frame[~frame["kind"].isin(["missing", "doubtful"])]
        daily = good.groupby(good["time"].dt.floor("D"))["rain"].agg(["sum", "max", "count"])
        days.append(daily[daily["count"] >= 18].assign(gauge=name))
        for kind, count in frame["kind"].value_counts().items():
            kinds[kind] = kinds.get(kind, 0) + count
        if len(kept) < 4:
            kept.append(frame)
        reading += t0 - cuts[-1]
        judging += t1 - t0
        cuts.append(time.monotonic_ns())
    print(f"{len(pd.concat(days))} days, {kinds}")

    quick = []
    for frame in kept:
        begin = time.monotonic_ns()
        fast = judge_columns(frame)
        quick.append(time.monotonic_ns() - begin)
        assert (fast == frame["kind"]).all()
    write(
        tile(cuts, "file"),
        unit="file",
        limiting="python",
        levels={"hour": 36 * 2880},
        phases_ns={"data": reading, "judge": judging},
        problem=problem(
            "hours are judged by apply, row by row",
            "rain_gauges.py:judge",
            "python",
            wasted_ns=judging - sorted(quick)[2] * 36,
        ),
    )


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        main(Path(name))
