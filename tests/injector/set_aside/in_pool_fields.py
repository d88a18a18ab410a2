"""Ensemble of random fields made by a process pool, combined in the main process."""
import argparse, json, multiprocessing, os, statistics, time
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
import numpy as np

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--defect", choices=["on", "off"], default="on")
parser.add_argument("--steps", type=int, default=180)
parser.add_argument("--size", type=int, default=640)
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

def simulate(seed):
    rng = np.random.default_rng(seed)
    line = rng.standard_normal(args.size)
    field = np.add.outer(np.sin(line), np.cos(line))
    if DEFECT:
        return field  # DEFECT
    return field.mean(1)


def combine(state, profile):
    outer = np.outer(profile[:600], profile[:600])
    state = np.tanh(state @ outer / 50 + state)
    return state / np.linalg.norm(state)


def main():
    state = np.eye(600)
    times, total = Times(), 0.0
    with multiprocessing.get_context("fork").Pool(1) as pool:
        results = pool.imap(simulate, range(args.steps))
        for step in range(args.steps):
            before = time.perf_counter_ns()
            result = next(results)
            profile = result.mean(1) if DEFECT else result
            state = combine(state, profile)
            total += float(state[0, 0])
            times.append(time.perf_counter_ns() - before)
    report(times, total)


if __name__ == "__main__":
    main()
