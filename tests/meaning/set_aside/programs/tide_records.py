"""Tides of a coast: the record of each gauge is read from an archive and its strongest periods are found by FFT.

Planted: the archive's mount takes 14 ms to answer (slept here) and records are read one after the other, by the loop
itself, though a few threads could read ahead. Every 40th gauge the table so far is saved by `save`. Truth: 320 gauges,
a step is one of them, 8 save the table; limited by data; the gain is the measured time of reading.
"""

import json
import time

import numpy as np
from truth import problem, tile, write

HOURS = 24 * 365 * 3
rng = np.random.default_rng(30)
hours = np.arange(HOURS)
gauges, datums = [], []
for i in range(320):
    gauges.append(f"gauge_{i:03d}.rec")
    datums.append(rng.uniform(1, 3))
    if i < 16:  # the others have the same heights, to save time here
        tide = 1.8 * np.sin(hours * 2 * np.pi / 12.42 + i) + 0.5 * np.sin(hours * 2 * np.pi / 23.93 - i)
        raw = (1000 * (tide + rng.normal(0, 0.3, HOURS))).astype("<i2").tobytes()
    with open(gauges[-1], "wb") as f:
        f.write(json.dumps({"station": 7000 + i, "scale": 0.001}).encode() + b"\n" + raw)


def save(table):
    with open("tides.json", "w") as f:
        json.dump(table, f)


window = np.hanning(HOURS)
table = {}
reading = 0
cuts = [time.monotonic_ns()]
for gauge, datum in zip(gauges, datums):
    time.sleep(0.014)
    with open(gauge, "rb") as f:
        header = json.loads(f.readline())
        heights = np.frombuffer(f.read(), "<i2")
    reading += time.monotonic_ns() - cuts[-1]
    heights = heights * header["scale"] - datum
    heights -= heights.mean()
    power = np.abs(np.fft.rfft(heights * window)) ** 2
    strongest = np.argsort(power[1:])[:-6:-1] + 1
    table[header["station"]] = [round(HOURS / k, 2) for k in strongest.tolist()]
    if len(table) % 40 == 0:
        save(table)
    cuts.append(time.monotonic_ns())

print("station 7000:", table[7000])
write(
    tile(cuts, lambda i: "gauge+save" if i % 40 == 39 else "gauge"),
    unit="gauge",
    limiting="data",
    limiting_also=["io"],
    phases_ns={"data": reading},
    problem=problem("each record is waited for by the loop", "tide_records.py:<module>", "data", wasted_ns=reading),
)
