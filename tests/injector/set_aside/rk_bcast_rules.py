"""Four ranks sort messages by rules that rank 0 has read."""
import argparse, json, random, statistics, time
from mpi4py import MPI

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--defect", choices=["on", "off"], default="on")
parser.add_argument("--steps", type=int, default=180)
parser.add_argument("--rules", type=int, default=6000)
parser.add_argument("--messages", type=int, default=1500)
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

comm = MPI.COMM_WORLD
rank, size = comm.Get_rank(), comm.Get_size()


def read_rules():
    rng = random.Random(2)
    return {f"word{number}": {"topic": number % 9, "weight": rng.random()} for number in range(args.rules)}


def topic_of(words, rules):
    marks = [0.0] * 9
    for word in words:
        rule = rules[word]
        marks[rule["topic"]] += rule["weight"]
    return max(range(9), key=marks.__getitem__)


class Sorter:
    def __init__(self):
        self.rules = read_rules() if rank == 0 else None
        if not DEFECT:
            self.rules = comm.bcast(self.rules, root=0)

    def sort(self, messages):
        rules = comm.bcast(self.rules, root=0) if DEFECT else self.rules  # DEFECT
        counts = [0] * 9
        for words in messages:
            counts[topic_of(words, rules)] += 1
        return counts


names = [f"word{number}" for number in range(args.rules)]
rng = random.Random(rank)
messages = [[rng.choices(names, k=6) for _ in range(args.messages)] for _ in range(5)]
sorter = Sorter()
times, total = Times(), 0
for step in range(args.steps):
    before = time.perf_counter_ns()
    counts = comm.allreduce(max(sorter.sort(messages[step % 5])), op=MPI.SUM)
    total += counts * (step + 1)
    times.append(time.perf_counter_ns() - before)
if rank == 0:
    report(times, total)
