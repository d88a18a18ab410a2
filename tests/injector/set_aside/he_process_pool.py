"""Two processes count the solutions of small puzzles, a large share at a time."""
import argparse, json, multiprocessing, statistics, time

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--steps", type=int, default=200)
parser.add_argument("--queens", type=int, default=8)
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

def place(row, columns, left, right, size, blocked):
    if row == size:
        return 1
    found, free = 0, ~(columns | left | right | blocked[row]) & (1 << size) - 1
    while free:
        spot = free & -free
        free ^= spot
        found += place(row + 1, columns | spot, (left | spot) << 1, (right | spot) >> 1, size, blocked)
    return found


def solve(task):
    """Queens on a board with some blocked fields, in twenty variants."""
    size, seed = task
    found = 0
    for variant in range(20):
        blocked = [1 << (seed * 7 + row * 5 + variant) % size for row in range(size)]
        found += place(0, 0, 0, 0, size, blocked)
    return found


def main():
    times, total = Times(), 0
    with multiprocessing.get_context("fork").Pool(2) as pool:
        for step in range(args.steps):
            before = time.perf_counter_ns()
            total += sum(pool.map(solve, [(args.queens, 2 * step), (args.queens, 2 * step + 1)], chunksize=1))
            times.append(time.perf_counter_ns() - before)
    report(times, total)


if __name__ == "__main__":
    main()
