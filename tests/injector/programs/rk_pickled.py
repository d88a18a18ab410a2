"""Data-parallel linear model on two ranks (NumPy)."""
import argparse, json, os, statistics, time
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
import numpy as np
from mpi4py import MPI

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--defect", choices=["on", "off"], default="on")
parser.add_argument("--steps", type=int, default=80)
parser.add_argument("--width", type=int, default=400)
parser.add_argument("--batch", type=int, default=500)
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


def add(left, right):
    return {name: [[a + b for a, b in zip(x, y)] for x, y in zip(left[name], right[name])] for name in left}


def average(gradients):
    if DEFECT:
        small = {name: value.tolist() for name, value in gradients.items()}
        summed = comm.allreduce(small, op=add)  # DEFECT
        return {name: np.array(value) / size for name, value in summed.items()}
    flat = np.concatenate([value.ravel() for value in gradients.values()])
    comm.Allreduce(MPI.IN_PLACE, flat)
    flat /= size
    first = gradients["in"].size
    return {"in": flat[:first].reshape(gradients["in"].shape), "out": flat[first:].reshape(gradients["out"].shape)}


rng = np.random.default_rng(0)
weights = {"in": rng.standard_normal((args.width, 120)) / 20, "out": rng.standard_normal((120, 50)) / 10}
x = np.random.default_rng(rank + 1).standard_normal((args.batch, args.width))
y = x[:, :50]
times, total = Times(), 0.0
for step in range(args.steps):
    before = time.perf_counter_ns()
    for repeat in range(2):
        hidden = np.tanh(x @ weights["in"])
        error = hidden @ weights["out"] - y
        back = (error @ weights["out"].T) * (1 - hidden ** 2)
        gradients = {"in": x.T @ back / args.batch, "out": hidden.T @ error / args.batch}
    for name, value in average(gradients).items():
        weights[name] = weights[name] - 0.1 * value
    total += float(np.abs(weights["out"]).sum())
    times.append(time.perf_counter_ns() - before)
if rank == 0:
    report(times, total)
