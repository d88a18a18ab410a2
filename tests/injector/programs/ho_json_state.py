"""Particles in a box, with a status document for a dashboard."""
import argparse, json, os, statistics, time
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
import numpy as np

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--defect", choices=["on", "off"], default="on")
parser.add_argument("--steps", type=int, default=90)
parser.add_argument("--particles", type=int, default=500)
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

class Box:
    def __init__(self, count):
        rng = np.random.default_rng(0)
        self.place, self.speed = rng.random((count, 3)), rng.standard_normal((count, 3)) / 100

    def advance(self):
        gap = self.place[:, None, :] - self.place[None, :, :]
        near = (gap ** 2).sum(2) + 0.01
        self.speed += 1e-7 * (gap / near[..., None] ** 1.5).sum(1)
        self.place = (self.place + self.speed) % 1.0


class Dashboard:
    def __init__(self):
        self.document, self.trail = "", []

    def publish(self, step, box):
        self.trail = (self.trail + box.place[:400].ravel().round(4).tolist())[-30000:]
        if DEFECT or step % 20 == 0:
            self.document = json.dumps({"step": step, "place": box.place.tolist(), "speed": box.speed.tolist(), "trail": self.trail})  # DEFECT


box, dashboard = Box(args.particles), Dashboard()
times, total = Times(), 0.0
for step in range(args.steps):
    before = time.perf_counter_ns()
    box.advance()
    dashboard.publish(step, box)
    if step % 20 == 0:
        total += len(json.loads(dashboard.document)["place"])
    times.append(time.perf_counter_ns() - before)
report(times, total + float(box.place.sum()))
