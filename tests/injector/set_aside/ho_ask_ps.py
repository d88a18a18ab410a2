"""Ants look for a short round trip; the memory in use is watched."""
import argparse, json, os, random, statistics, subprocess, time

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--defect", choices=["on", "off"], default="on")
parser.add_argument("--steps", type=int, default=200)
parser.add_argument("--cities", type=int, default=45)
parser.add_argument("--ants", type=int, default=36)
args = parser.parse_args()
DEFECT = args.defect == "on"
random.seed(0)

class Times(list):
    def append(self, duration_ns):
        super().append(duration_ns)
        if len(self) == 10:
            self.cpu_at_10 = time.process_time()


def report(times, check=None):
    kept = [t / 1e6 for t in times[10:]]
    print(json.dumps({"step_ms_median": round(statistics.median(kept), 4), "step_ms_mean": round(statistics.fmean(kept), 4),
                      "cpu_ms_mean": round((time.process_time() - times.cpu_at_10) * 1e3 / len(kept), 4), "steps": len(times), "check": check}))

def memory_used():
    """Resident memory of this process in kB."""
    if DEFECT:
        command = ["ps", "-o", "rss=", "-p", str(os.getpid())]
        return int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)  # DEFECT
    with open("/proc/self/status") as file:
        return int(next(line for line in file if line.startswith("VmRSS")).split()[1])


class Colony:
    def __init__(self):
        places = [(random.random(), random.random()) for _ in range(args.cities)]
        self.far = [[((a - c) ** 2 + (b - d) ** 2) ** 0.5 + 1e-9 for c, d in places] for a, b in places]
        self.scent = [[1.0] * args.cities for _ in places]
        self.shortest = 1e9

    def walk(self):
        here, left, length = 0, list(range(1, args.cities)), 0.0
        trip = [0]
        while left:
            far, scent = self.far[here], self.scent[here]
            there = random.choices(left, [scent[city] / far[city] ** 2 for city in left])[0]
            length += far[there]
            left.remove(there)
            trip.append(there)
            here = there
        return length + self.far[here][0], trip

    def step(self):
        for row in self.scent:
            row[:] = [0.9 * value for value in row]
        for _ in range(args.ants):
            length, trip = self.walk()
            for a, b in zip(trip, trip[1:] + trip[:1]):
                self.scent[a][b] += 1 / length
                self.scent[b][a] += 1 / length
            self.shortest = min(self.shortest, length)


colony, peak = Colony(), 0
times = Times()
while len(times) < args.steps:
    before = time.perf_counter_ns()
    colony.step()
    peak = max(peak, memory_used())
    times.append(time.perf_counter_ns() - before)
report(times, colony.shortest)
