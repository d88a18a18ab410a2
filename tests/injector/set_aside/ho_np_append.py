"""Three-body orbit that keeps its whole trajectory (NumPy)."""
import argparse, json, os, statistics, time
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
import numpy as np

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--defect", choices=["on", "off"], default="on")
parser.add_argument("--steps", type=int, default=100)
parser.add_argument("--inner", type=int, default=60)
parser.add_argument("--bodies", type=int, default=400)
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

class Orbit:
    def __init__(self, count):
        rng = np.random.default_rng(0)
        self.place, self.speed = rng.standard_normal((count, 2)), rng.standard_normal((count, 2)) / 10
        self.trajectory = np.zeros((0, count, 2)) if DEFECT else []

    def keep(self, places):
        if DEFECT:
            for place in places:
                self.trajectory = np.append(self.trajectory, place[None], axis=0)  # DEFECT
        else:
            self.trajectory.extend(places)

    def advance(self, inner):
        places = []
        for i in range(inner):
            pull = -self.place / ((self.place ** 2).sum(1, keepdims=True) + 0.1) ** 1.5
            for _ in range(8):
                pull = 0.9 * pull + 0.1 * np.tanh(pull)
            self.speed = self.speed + 0.01 * pull
            self.place = self.place + 0.01 * self.speed
            if i % 12 == 0:
                places.append(self.place)
        self.keep(places)


orbit = Orbit(args.bodies)
times, total = Times(), 0.0
for step in range(args.steps):
    before = time.perf_counter_ns()
    orbit.advance(args.inner)
    total += float(orbit.place.sum())
    times.append(time.perf_counter_ns() - before)
report(times, total + len(orbit.trajectory))
