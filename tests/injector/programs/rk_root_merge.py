"""Counts of categories in a stream, over four ranks."""
import argparse, collections, json, os, statistics, time
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
import numpy as np
from mpi4py import MPI

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--defect", choices=["on", "off"], default="on")
parser.add_argument("--steps", type=int, default=70)
parser.add_argument("--events", type=int, default=16000)
parser.add_argument("--classes", type=int, default=200)
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


def make_events(rng):
    waves = np.abs(np.sin(rng.random((args.events, 8)) * np.arange(1, 9))).sum(1)
    return (waves * 1000).astype(np.int64) % args.classes


def merge_counts(events):
    if DEFECT:
        everything = comm.gather(events.tolist(), root=0)
        counts = None
        if rank == 0:
            counter = collections.Counter()
            for part in everything:
                for event in part:
                    counter[event] += 1  # DEFECT
            counts = np.array([counter[c] for c in range(args.classes)])
        return comm.bcast(counts, root=0)
    counts = np.zeros(args.classes, np.int64)
    comm.Allreduce(np.bincount(events, minlength=args.classes), counts)
    return counts


rng = np.random.default_rng(rank)
times, total = Times(), 0.0
for step in range(args.steps):
    before = time.perf_counter_ns()
    counts = merge_counts(make_events(rng))
    total += int(counts.max())
    times.append(time.perf_counter_ns() - before)
if rank == 0:
    report(times, total)
