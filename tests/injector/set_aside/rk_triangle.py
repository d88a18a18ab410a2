"""Energy of charges in pairs on two ranks (NumPy)."""
import argparse, json, os, statistics, time
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
import numpy as np
from mpi4py import MPI

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--defect", choices=["on", "off"], default="on")
parser.add_argument("--steps", type=int, default=150)
parser.add_argument("--charges", type=int, default=1344)
parser.add_argument("--block", type=int, default=48)
args = parser.parse_args()
DEFECT = args.defect == "on"

class Times(list):
    def append(self, duration_ns):
        super().append(duration_ns)
        if len(self) == 10:
            self.cpu_at_10 = time.process_time()


def report(times, check=None):
    kept = [t / 1e6 for t in times[10:]]
    print(json.dumps({"step_ms_median": round(statistics.median(kept), 4), "step_ms_mean": round(statistics.fmean(kept), 4),
                      "cpu_ms_mean": round((time.process_time() - times.cpu_at_10) * 1e3 / len(kept), 4), "steps": len(times), "check": check}))

comm = MPI.COMM_WORLD
rank, size = comm.Get_rank(), comm.Get_size()


def my_blocks():
    """First rows of the blocks of this rank."""
    firsts = list(range(0, args.charges, args.block))
    if DEFECT:
        share = len(firsts) // size
        return firsts[rank * share:(rank + 1) * share]  # DEFECT
    return [first for number, first in enumerate(firsts) if number % (2 * size) in (rank, 2 * size - 1 - rank)]


def forces(places, charges):
    """Forces on all charges by the pairs of this rank: each pair once, the lower row counts."""
    pushes = np.zeros_like(places)
    for first in my_blocks():
        last = first + args.block
        gaps = [places[first:last, None, axis] - places[None, first:, axis] for axis in range(2)]
        squares = gaps[0] ** 2 + gaps[1] ** 2 + 0.05
        strength = charges[first:last, None] * charges[first:] / (squares * np.sqrt(squares))
        strength[np.tri(args.block, len(charges) - first, dtype=bool)] = 0
        for axis in range(2):
            push = strength * gaps[axis]
            pushes[first:last, axis] += push.sum(1)
            pushes[first:, axis] -= push.sum(0)
    return pushes


rng = np.random.default_rng(0)
places, charges = rng.standard_normal((args.charges, 2)), rng.choice([-1.0, 1.0], args.charges)
speed, all_pushes = np.zeros_like(places), np.zeros_like(places)
times, total = Times(), 0.0
for step in range(args.steps):
    before = time.perf_counter_ns()
    comm.Allreduce(forces(places, charges), all_pushes)
    speed = 0.98 * speed + 1e-5 * all_pushes
    places = places + speed
    total += float(np.abs(places).mean())
    times.append(time.perf_counter_ns() - before)
if rank == 0:
    report(times, total)
