"""Nearest neighbours of query batches among stored vectors."""
import argparse, json, statistics, time
import torch

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--steps", type=int, default=190)
parser.add_argument("--queries", type=int, default=320)
parser.add_argument("--stored", type=int, default=12000)
args = parser.parse_args()
torch.set_num_threads(1)
torch.manual_seed(0)

class Times(list):
    def append(self, duration_ns):
        super().append(duration_ns)
        if len(self) == 10:
            self.cpu_at_10 = time.process_time()


def report(times, check=None):
    kept = [t / 1e6 for t in times[10:]]
    print(json.dumps({"step_ms_median": round(statistics.median(kept), 4), "step_ms_mean": round(statistics.fmean(kept), 4),
                      "cpu_ms_mean": round((time.process_time() - times.cpu_at_10) * 1e3 / len(kept), 4), "steps": len(times), "check": check}))

class Index:
    def __init__(self, vectors):
        self.vectors = torch.nn.functional.normalize(vectors, dim=1).t().contiguous()

    def search(self, queries, k):
        scores = torch.nn.functional.normalize(queries, dim=1) @ self.vectors
        return scores.topk(k, dim=1)


index = Index(torch.randn(args.stored, 96))
queries = torch.randn(5, args.queries, 96)
times, total = Times(), 0.0
with torch.inference_mode():
    for step in range(args.steps):
        before = time.perf_counter_ns()
        scores, places = index.search(queries[step % 5], 10)
        total += scores.mean().item()
        times.append(time.perf_counter_ns() - before)
report(times, total)
