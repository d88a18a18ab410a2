"""Heat in a plate on two ranks; rank 0 writes the field now and then."""
import argparse, json, os, shutil, statistics, tempfile, time
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
import numpy as np
from mpi4py import MPI

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--defect", choices=["on", "off"], default="on")
parser.add_argument("--steps", type=int, default=150)
parser.add_argument("--rows", type=int, default=200)
parser.add_argument("--columns", type=int, default=400)
parser.add_argument("--every", type=int, default=5)
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
rank, other = comm.Get_rank(), 1 - comm.Get_rank()


class Half:
    """The rows of a rank, between two rows of the neighbour or the border."""

    def __init__(self):
        self.heat = np.random.default_rng(rank).random((args.rows + 2, args.columns))
        self.edge, self.halo = (args.rows, args.rows + 1) if rank == 0 else (1, 0)

    def sweep(self):
        heat = self.heat
        comm.Sendrecv(heat[self.edge], dest=other, recvbuf=heat[self.halo], source=other)
        inner = heat[1:-1, 1:-1]
        inner += 0.2 * (heat[2:, 1:-1] + heat[:-2, 1:-1] + heat[1:-1, 2:] + heat[1:-1, :-2] - 4 * inner)


def write_field(folder, step, half):
    whole = np.empty((2 * args.rows, args.columns)) if rank == 0 else None
    comm.Gather(np.ascontiguousarray(half.heat[1:-1]), whole, root=0)
    if rank == 0:
        coarse = whole[::2, ::2]
        if DEFECT:
            np.savetxt(os.path.join(folder, f"heat_{step % 10}.txt"), coarse)  # DEFECT
        else:
            np.save(os.path.join(folder, f"heat_{step % 10}.npy"), coarse)


folder = tempfile.mkdtemp() if rank == 0 else None
half, warm = Half(), np.zeros(1)
times, total = Times(), 0.0
for step in range(args.steps):
    before = time.perf_counter_ns()
    for _ in range(12):
        half.sweep()
    if step % args.every == args.every - 1:
        write_field(folder, step, half)
    comm.Allreduce(half.heat[1:-1].mean(keepdims=True)[0], warm)
    total += float(warm[0])
    times.append(time.perf_counter_ns() - before)
if rank == 0:
    shutil.rmtree(folder)
    report(times, total)
