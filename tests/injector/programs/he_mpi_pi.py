"""Volume of a ball by Monte Carlo on four ranks, one reduction per step."""
import argparse, json, os, statistics, time
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
import numpy as np
from mpi4py import MPI

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--steps", type=int, default=120)
parser.add_argument("--points", type=int, default=150000)
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

def main():
    comm = MPI.COMM_WORLD
    rng, inside = np.random.default_rng(comm.Get_rank()), np.zeros(1, np.int64)
    times, total = Times(), 0.0
    for step in range(args.steps):
        before = time.perf_counter_ns()
        points = rng.random((args.points, 5))
        hits = np.count_nonzero((points ** 2).sum(1) < 1.0)
        comm.Allreduce(np.array([hits]), inside)
        total += int(inside[0])
        times.append(time.perf_counter_ns() - before)
    if comm.Get_rank() == 0:
        report(times, total)


main()
