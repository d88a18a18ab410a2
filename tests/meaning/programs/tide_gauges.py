"""Many small text files of tide gauges are read one by one; each row is parsed, checked and added to its gauge's day.

Planted: `moment` uses datetime.strptime, which is most of the time, though all stamps are ISO dates, for which
fromisoformat does the same. Truth: 560 files of 240 rows each; a step is a file, rows are the inner level. Limited by
Python. `data` is opening and reading a file; the gain is the measured time of `moment` less what fromisoformat needs
for the same stamps, measured after the loop on one file's stamps, ten times. Files are written before the loop begins.
"""

import random
import sys
import tempfile
import time
from datetime import datetime, timedelta
from pathlib import Path

from truth import problem, tile, write

FILES, ROWS = 560, 240
parsing = 0


def make_files(folder):
    rng = random.Random(1)
    start = datetime(2021, 3, 1)
    stamps = [start + timedelta(minutes=6 * k) for k in range(ROWS)]
    for number in range(FILES):
        days = timedelta(days=number // 8)
        level, lines = 200.0, ["time;level_cm;flag;celsius"]
        for stamp in stamps:
            level += rng.gauss(0, 2)
            flag = "S" if rng.random() < 0.01 else "G"
            lines.append(f"{stamp + days};{level:.1f};{flag};{9 + rng.random() * 4:.2f}")
        Path(folder, f"gauge{number % 8}_{number // 8:03}.txt").write_text("\n".join(lines) + "\n")


def moment(text):
    return datetime.strptime(text, "%Y-%m-%d %H:%M:%S")


def plausible(level, flag):
    return flag == "G" and -500 < level < 900


def density(celsius):
    return 1028.1 - 0.06 * celsius - 0.0043 * celsius**2


def corrected(level, celsius):
    return level * 1025.0 / density(celsius)


def add(days, gauge, when, level):
    key = gauge, when.date()
    low, high, count, total = days.get(key, (level, level, 0, 0.0))
    days[key] = min(low, level), max(high, level), count + 1, total + level


def handle(row, gauge, days):
    global parsing
    stamp, level, flag, celsius = row.split(";")
    t = time.monotonic_ns()
    when = moment(stamp)
    parsing += time.monotonic_ns() - t
    level = float(level)
    if not plausible(level, flag):
        return False
    add(days, gauge, when, corrected(level, float(celsius)))
    return True


def main(folder):
    make_files(folder)
    days, dropped, reading = {}, 0, 0
    paths = sorted(Path(folder).glob("gauge*.txt"))
    cuts = [time.monotonic_ns()]
    for path in paths:
        rows = path.read_text().splitlines()
        reading += time.monotonic_ns() - cuts[-1]
        gauge = path.stem.partition("_")[0]
        for row in rows[1:]:
            if not handle(row, gauge, days):
                dropped += 1
        cuts.append(time.monotonic_ns())

    highest = max(days, key=lambda key: days[key][1])
    print(f"{len(days)} days of gauges, {dropped} rows dropped, highest at {highest[0]} on {highest[1]}", file=sys.stderr)
    stamps = [row.split(";")[0] for row in rows[1:]]
    t = time.monotonic_ns()
    for _ in range(10):
        quick = [datetime.fromisoformat(stamp) for stamp in stamps]
    quickly = (time.monotonic_ns() - t) * FILES // 10
    assert quick == [moment(stamp) for stamp in stamps]
    write(
        tile(cuts, "file"),
        unit="file",
        limiting="python",
        levels={"row": FILES * ROWS},
        phases_ns={"data": reading},
        problem=problem(
            "stamps in ISO format are parsed by strptime",
            "tide_gauges.py:moment",
            "python",
            wasted_ns=parsing - quickly,
        ),
    )


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        main(place)
