"""The potential between two plates, relaxed until it no longer changes.

Planted: the whole field is written and synced after each sweep, "in case the job is killed", to a disk that answers
late (12 ms, slept here, beside the real fsync), though one copy in 50 sweeps would do. Truth: a `while` loop of sweeps,
as many as it takes to converge; limited by input and output; the gain is the measured time of writing, less 1 in 50.
"""

import os
import time

import numpy as np
from truth import problem, tile, write

N = 360
u = np.zeros((N, N))
plates = np.zeros((N, N), dtype=bool)
plates[120, 80:280] = plates[240, 80:280] = True
voltage = np.zeros((N, N))
voltage[120, 80:280], voltage[240, 80:280] = 100.0, -100.0

tolerance = 0.08
change = np.inf
sweeps = 0
writing = 0
out = open("potential.raw", "wb")
cuts = [time.monotonic_ns()]
while change > tolerance:
    new = u.copy()
    new[1:-1, 1:-1] = 0.25 * (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:])
    new[plates] = voltage[plates]
    change = np.abs(new - u).max()
    u = new
    sweeps += 1

    before = time.monotonic_ns()
    out.seek(0)
    out.write(u.data)
    out.flush()
    os.fsync(out.fileno())
    time.sleep(0.012)
    writing += time.monotonic_ns() - before

    if sweeps % 50 == 0:
        print("sweep", sweeps, "largest change", round(float(change), 4))
    cuts.append(time.monotonic_ns())
out.close()
print("converged after", sweeps, "sweeps; field in the middle", u[179, 180] - u[181, 180])
write(
    tile(cuts, "sweep"),
    unit="sweep",
    limiting="io",
    phases_ns={"checkpoint": writing},
    problem=problem(
        "the field is written and synced after each sweep", "capacitor_plates.py:<module>", "io",
        wasted_ns=writing * 49 // 50,
    ),
)  # fmt: skip
