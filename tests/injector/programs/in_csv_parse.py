"""Several epochs over a table in text form."""
import argparse, json, os, statistics, tempfile, time
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
import numpy as np
import torch
import in_csv_helper as tables

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--defect", choices=["on", "off"], default="on")
parser.add_argument("--steps", type=int, default=96)
parser.add_argument("--batch", type=int, default=512)
parser.add_argument("--width", type=int, default=128)
parser.add_argument("--per_epoch", type=int, default=12)
args = parser.parse_args()
DEFECT = args.defect == "on"
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

def main():
    path = os.path.join(tempfile.mkdtemp(), "table.csv")
    tables.write_table(path, args.batch * args.per_epoch, args.width)
    table = tables.Table(path, args.batch, keep=not DEFECT)
    model = torch.nn.Sequential(torch.nn.Linear(args.width, 512), torch.nn.ReLU(), torch.nn.Linear(512, 512), torch.nn.ReLU(),
                                torch.nn.Linear(512, args.width))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    times, total = Times(), 0.0
    for epoch in range(args.steps // args.per_epoch):
        for number in range(args.per_epoch):
            before = time.perf_counter_ns()
            rows = torch.from_numpy(table.batch(number))
            loss = torch.nn.functional.mse_loss(model(rows), rows)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
            times.append(time.perf_counter_ns() - before)
    os.remove(path)
    report(times, total)


if __name__ == "__main__":
    main()
