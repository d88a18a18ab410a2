"""Training with a log of the losses."""
import argparse, json, logging, os, statistics, tempfile, time
import torch

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--defect", choices=["on", "off"], default="on")
parser.add_argument("--steps", type=int, default=130)
parser.add_argument("--batch", type=int, default=1200)
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

def make_logger(path):
    logger = logging.getLogger("training")
    logger.setLevel(logging.INFO)
    logger.propagate = False
    handler = logging.FileHandler(path, mode="w")
    handler.setFormatter(logging.Formatter("%(asctime)s %(name)s %(levelname)s %(message)s"))
    logger.addHandler(handler)
    return logger


def record(logger, step, losses):
    values = losses.tolist()
    if DEFECT:
        for sample, value in enumerate(values):
            logger.info("step %d sample %d loss %.5f", step, sample, value)  # DEFECT
    else:
        logger.info("step %d mean loss %.5f worst %.5f", step, sum(values) / len(values), max(values))
    return sum(values) / len(values)


path = os.path.join(tempfile.mkdtemp(), "train.log")
logger = make_logger(path)
model = torch.nn.Sequential(torch.nn.Linear(96, 384), torch.nn.ReLU(), torch.nn.Linear(384, 192), torch.nn.ReLU(), torch.nn.Linear(192, 12))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
x, y = torch.randn(4, args.batch, 96), torch.randint(0, 12, (4, args.batch))
times, total = Times(), 0.0
for step in range(args.steps):
    before = time.perf_counter_ns()
    losses = torch.nn.functional.cross_entropy(model(x[step % 4]), y[step % 4], reduction="none")
    optimizer.zero_grad()
    losses.mean().backward()
    optimizer.step()
    total += record(logger, step, losses.detach())
    times.append(time.perf_counter_ns() - before)
os.remove(path)
report(times, total)
