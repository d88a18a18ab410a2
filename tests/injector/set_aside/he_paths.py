"""Shortest paths through a maze of costs, in plain Python."""
import argparse, heapq, json, random, statistics, time

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--steps", type=int, default=150)
parser.add_argument("--side", type=int, default=90)
args = parser.parse_args()
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

class Maze:
    def __init__(self, side):
        self.side = side
        self.cost = [random.choice((1, 1, 2, 4, 8)) for _ in range(side * side)]
        self.beside = [self._beside(*divmod(field, side)) for field in range(side * side)]

    def _beside(self, y, x):
        near = ((y - 1, x), (y + 1, x), (y, x - 1), (y, x + 1))
        return [b * self.side + a for b, a in near if 0 <= b < self.side and 0 <= a < self.side]

    def path_cost(self, start, goal):
        """A*: the least cost from start to goal."""
        goal_y, goal_x = divmod(goal, self.side)
        best, waiting = {start: 0}, [(0, start)]
        while waiting:
            _, field = heapq.heappop(waiting)
            if field == goal:
                return best[field]
            spent = best[field]
            for following in self.beside[field]:
                cost = spent + self.cost[following]
                if cost < best.get(following, 1 << 30):
                    best[following] = cost
                    y, x = divmod(following, self.side)
                    heapq.heappush(waiting, (cost + abs(y - goal_y) + abs(x - goal_x), following))


maze = Maze(args.side)
times, total = Times(), 0
for step in range(args.steps):
    before = time.perf_counter_ns()
    total += maze.path_cost(step % 5, args.side * args.side - 1 - step % 7)
    times.append(time.perf_counter_ns() - before)
report(times, total)
