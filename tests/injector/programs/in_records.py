"""Fit a linear probe to records of a binary file."""
import argparse, json, os, statistics, struct, tempfile, time
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
import numpy as np

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--defect", choices=["on", "off"], default="on")
parser.add_argument("--steps", type=int, default=200)
parser.add_argument("--batch", type=int, default=64)
parser.add_argument("--width", type=int, default=200)
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

class RecordFile:
    def __init__(self, path, width):
        self.path, self.width = path, width
        self.file = open(path, "rb")

    def record(self, index):
        offset = index * self.width * 4
        if DEFECT:
            values = []
            with open(self.path, "rb", buffering=0) as file:
                file.seek(offset)
                for _ in range(self.width):
                    values.append(struct.unpack("<f", file.read(4))[0])  # DEFECT
            return np.array(values, np.float32)
        self.file.seek(offset)
        return np.frombuffer(self.file.read(self.width * 4), np.float32)


def fit(batch, weights):
    features = np.tanh(batch @ weights)
    gram = features.T @ features + np.eye(features.shape[1], dtype=np.float32)
    return np.linalg.solve(gram, features.T @ batch)


rng = np.random.default_rng(0)
path = os.path.join(tempfile.mkdtemp(), "records.bin")
rng.standard_normal((4096, args.width)).astype(np.float32).tofile(path)
weights = rng.standard_normal((args.width, 400)).astype(np.float32) / 20
store = RecordFile(path, args.width)
times, total = Times(), 0.0
for step in range(args.steps):
    before = time.perf_counter_ns()
    batch = np.stack([store.record((step * args.batch + i) * 7 % 4096) for i in range(args.batch)])
    solution = fit(batch, weights)
    total += float(np.abs(solution).mean())
    times.append(time.perf_counter_ns() - before)
os.remove(path)
report(times, total)
