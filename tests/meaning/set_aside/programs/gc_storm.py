"""A large heap of small objects is alive, and each iteration calls `gc.collect()` "to save memory".

Truth: 30 iterations, limited by garbage collection; the gain is the measured time of the calls.
"""

import gc
from time import monotonic_ns

import numpy as np
from truth import problem, tile, write

index = [[i, str(i)] for i in range(400_000)]
work = np.ones((150, 150))
collecting = 0
cuts = [monotonic_ns()]
for _ in range(30):
    work = np.tanh(work @ work / 150)
    t = monotonic_ns()
    gc.collect()
    collecting += monotonic_ns() - t
    cuts.append(monotonic_ns())
write(
    tile(cuts, "iteration"),
    unit="iteration",
    limiting="garbage-collection",
    problem=problem("collects by hand each time", "gc_storm.py:<module>", "garbage-collection", wasted_ns=collecting),
)
