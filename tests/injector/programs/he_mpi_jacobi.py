"""Jacobi iteration on two ranks with a one-row halo."""
import argparse, json, os, statistics, time
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
import numpy as np
from mpi4py import MPI

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--steps", type=int, default=120)
parser.add_argument("--rows", type=int, default=300)
parser.add_argument("--columns", type=int, default=600)
args = parser.parse_args()

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
rank, other = comm.Get_rank(), 1 - comm.Get_rank()
field = np.random.default_rng(rank).random((args.rows + 2, args.columns))
fresh, largest = field.copy(), np.zeros(1)
edge, halo = (args.rows, args.rows + 1) if rank == 0 else (1, 0)
times, total = Times(), 0.0
for step in range(args.steps):
    before = time.perf_counter_ns()
    for sweep in range(10):
        comm.Sendrecv(field[edge], dest=other, recvbuf=field[halo], source=other)
        fresh[1:-1, 1:-1] = 0.25 * (field[2:, 1:-1] + field[:-2, 1:-1] + field[1:-1, 2:] + field[1:-1, :-2])
        field, fresh = fresh, field
    comm.Allreduce(np.array([np.abs(field - fresh).max()]), largest, op=MPI.MAX)
    total += float(largest[0])
    times.append(time.perf_counter_ns() - before)
if rank == 0:
    report(times, total)
