"""Adaptive refinement: each rank has its fine block in another sweep."""
import argparse, json, os, statistics, time
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
import numpy as np
from mpi4py import MPI

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--defect", choices=["on", "off"], default="on")
parser.add_argument("--steps", type=int, default=70)
parser.add_argument("--cells", type=int, default=220)
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


class Block:
    def __init__(self, cells):
        self.field = np.random.default_rng(rank).standard_normal((cells, cells))

    def relax(self, repeats):
        for _ in range(repeats):
            self.field = 0.2 * (self.field + np.roll(self.field, 1, 0) + np.roll(self.field, -1, 0) + np.roll(self.field, 1, 1)
                                + np.roll(self.field, -1, 1))

    def sweeps(self, step):
        for sweep in range(8):
            self.relax(12 if (sweep + rank + step) % size == 0 else 2)
            if DEFECT:
                comm.Barrier()  # DEFECT


block = Block(args.cells)
sums, total = np.zeros(1), 0.0
times = Times()
for step in range(args.steps):
    before = time.perf_counter_ns()
    block.sweeps(step)
    comm.Allreduce(np.array([np.abs(block.field).sum()]), sums)
    total += float(sums[0])
    times.append(time.perf_counter_ns() - before)
if rank == 0:
    report(times, total)
