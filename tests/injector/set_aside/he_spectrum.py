"""Spectral denoising of signals (NumPy)."""
import argparse, json, os, statistics, time
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
import numpy as np

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--steps", type=int, default=200)
parser.add_argument("--channels", type=int, default=100)
parser.add_argument("--length", type=int, default=8192)
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

class Denoiser:
    def __init__(self, length):
        frequency = np.arange(length // 2 + 1)
        self.response = 1.0 / (1.0 + (frequency / (length / 20)) ** 4)

    def __call__(self, signals):
        return np.fft.irfft(np.fft.rfft(signals, axis=1) * self.response, axis=1)


denoise = Denoiser(args.length)
signals = np.random.default_rng(0).standard_normal((3, args.channels, args.length))
times, total = Times(), 0.0
for step in range(args.steps):
    before = time.perf_counter_ns()
    total += float(denoise(signals[step % 3]).std())
    times.append(time.perf_counter_ns() - before)
report(times, total)
