"""Compressed blocks, unpacked ahead by a thread while the main thread analyses them."""
import argparse, json, os, statistics, time, zlib
from concurrent.futures import ThreadPoolExecutor
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
import numpy as np

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--steps", type=int, default=200)
parser.add_argument("--size", type=int, default=400)
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

def unpack(blob):
    return np.frombuffer(zlib.decompress(blob), np.float32).reshape(args.size, args.size)


def analyse(block):
    values = np.linalg.svd(block[:260, :260], compute_uv=False)
    return float(values[0] + np.tanh(block).mean())


rng = np.random.default_rng(0)
blobs = [zlib.compress(rng.integers(0, 30, (args.size, args.size)).astype(np.float32).tobytes(), 1) for _ in range(4)]
times, total = Times(), 0.0
with ThreadPoolExecutor(1) as pool:
    ahead = pool.submit(unpack, blobs[0])
    for step in range(args.steps):
        before = time.perf_counter_ns()
        block = ahead.result()
        ahead = pool.submit(unpack, blobs[(step + 1) % 4])
        total += analyse(block)
        times.append(time.perf_counter_ns() - before)
report(times, total)
