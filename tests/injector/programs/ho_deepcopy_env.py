"""Planning by trial moves in a grid world."""
import argparse, copy, json, random, statistics, time

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--defect", choices=["on", "off"], default="on")
parser.add_argument("--steps", type=int, default=200)
parser.add_argument("--trials", type=int, default=250)
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

class World:
    def __init__(self):
        pick = random.Random(0)
        self.grid = [[pick.randrange(4) for _ in range(12)] for _ in range(8)]
        self.x = self.y = self.score = 0

    def clone(self):
        if DEFECT:
            return copy.deepcopy(self)  # DEFECT
        other = World.__new__(World)
        other.grid, other.x, other.y, other.score = self.grid, self.x, self.y, self.score
        return other

    def move(self, way):
        self.x = (self.x + (1, 0, 11, 0)[way]) % 12
        self.y = (self.y + (0, 1, 0, 7)[way]) % 8
        self.score += self.grid[self.y][self.x]


def plan(world, pick, trials):
    best, best_way = -1, 0
    for trial in range(trials):
        copied, ways = world.clone(), [pick.randrange(4) for _ in range(60)]
        for way in ways:
            copied.move(way)
        if copied.score > best:
            best, best_way = copied.score, ways[0]
    return best_way


world, pick = World(), random.Random(1)
times, total = Times(), 0.0
for step in range(args.steps):
    before = time.perf_counter_ns()
    world.move(plan(world, pick, args.trials))
    total += world.score
    times.append(time.perf_counter_ns() - before)
report(times, total)
