"""Fourier transforms of planes whose rows are shared by two ranks (NumPy)."""
import argparse, json, os, statistics, time
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
import numpy as np
from mpi4py import MPI

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--steps", type=int, default=160)
parser.add_argument("--side", type=int, default=120)
parser.add_argument("--planes", type=int, default=6)
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
rank, size = comm.Get_rank(), comm.Get_size()
share = args.side // size


def transpose(rows):
    """Rows of the transposed plane."""
    sent = np.ascontiguousarray(rows.reshape(share, size, share).transpose(1, 2, 0))
    received = np.empty_like(sent)
    comm.Alltoall(sent, received)
    return received.transpose(1, 0, 2).reshape(share, args.side)


waves = np.fft.fftfreq(args.side)
damping = np.exp(-0.5 * (waves[rank * share:(rank + 1) * share, None] ** 2 + waves ** 2))
rng = np.random.default_rng(rank)
planes = [rng.standard_normal((share, args.side)).astype(complex) for _ in range(args.planes)]
times, total, largest = Times(), 0.0, np.zeros(1)
for step in range(args.steps):
    before = time.perf_counter_ns()
    for number, rows in enumerate(planes):
        columns = np.fft.fft(transpose(np.fft.fft(rows, axis=1)), axis=1)
        columns *= damping
        rows = np.fft.ifft(transpose(np.fft.ifft(columns, axis=1)), axis=1)
        planes[number] = rows + 0.01 * np.tanh(rows.real)
    comm.Allreduce(np.array([max(np.abs(rows).max() for rows in planes)]), largest, op=MPI.MAX)
    total += float(largest[0])
    times.append(time.perf_counter_ns() - before)
if rank == 0:
    report(times, total)
