"""Random walk that avoids states it has seen."""
import argparse, json, random, statistics, time

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--defect", choices=["on", "off"], default="on")
parser.add_argument("--steps", type=int, default=120)
parser.add_argument("--tries", type=int, default=100)
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

class Walker:
    def __init__(self):
        self.pick = random.Random(4)
        self.seen = [] if DEFECT else set()
        self.state = 1

    def is_new(self, state):
        return state not in self.seen  # DEFECT

    def remember(self, state):
        self.seen.append(state) if DEFECT else self.seen.add(state)

    def explore(self, tries):
        new = 0
        for _ in range(tries):
            candidate = (self.state * 48271 + self.pick.randrange(1000)) % 2147483647
            if self.is_new(candidate):
                self.remember(candidate)
                new += 1
            self.state = candidate
        return new


def energy(state):
    value = state
    for _ in range(150000):
        value = (value * 1103515245 + 12345) & 0x7FFFFFFF
    return value % 1000


walker = Walker()
for start in range(2000):
    walker.remember(-start)
times, total = Times(), 0.0
for step in range(args.steps):
    before = time.perf_counter_ns()
    total += walker.explore(args.tries) + energy(walker.state)
    times.append(time.perf_counter_ns() - before)
report(times, total)
