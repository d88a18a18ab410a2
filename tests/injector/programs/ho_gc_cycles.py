"""Random tree search, one tree per step."""
import argparse, json, random, statistics, time

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--defect", choices=["on", "off"], default="on")
parser.add_argument("--steps", type=int, default=80)
parser.add_argument("--nodes", type=int, default=9000)
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

class Node:
    __slots__ = ("value", "children", "parent", "visits", "path")

    def __init__(self, value, parent):
        self.value, self.children, self.visits = value, [], 0
        self.parent = parent if DEFECT else None  # DEFECT
        self.path = (value, [value])


def search(pick, count):
    root = Node(0.5, None)
    nodes, best = [root], 0.0
    for _ in range(count):
        node = nodes[int(pick.random() * len(nodes))]
        node.visits += 1
        child = Node(node.value * 0.9 + pick.random() * 0.1, node)
        node.children.append(child)
        nodes.append(child)
        best = max(best, child.value)
    return best


archive = [{"name": i, "moves": [i, i + 1]} for i in range(30000)]  # games played before
pick = random.Random(1)
times, total = Times(), 0.0
for step in range(args.steps):
    before = time.perf_counter_ns()
    total += search(pick, args.nodes)
    archive.append({"name": step, "moves": [total]})
    times.append(time.perf_counter_ns() - before)
report(times, total)
