"""Autoencoder with debug messages about its gradients."""
import argparse, json, logging, statistics, time
import torch

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--defect", choices=["on", "off"], default="on")
parser.add_argument("--steps", type=int, default=80)
parser.add_argument("--batch", type=int, default=400)
args = parser.parse_args()
DEFECT = args.defect == "on"
torch.set_num_threads(1)
torch.manual_seed(0)
logging.basicConfig(level=logging.WARNING)
logger = logging.getLogger("autoencoder")

class Times(list):
    def append(self, duration_ns):
        super().append(duration_ns)
        if len(self) == 10:
            self.cpu_at_10 = time.process_time()


def report(times, check=None):
    kept = [t / 1e6 for t in times[10:]]
    print(json.dumps({"step_ms_median": round(statistics.median(kept), 4), "step_ms_mean": round(statistics.fmean(kept), 4),
                      "cpu_ms_mean": round((time.process_time() - times.cpu_at_10) * 1e3 / len(kept), 4), "steps": len(times), "check": check}))

def watch(model):
    for name, parameter in model.named_parameters():
        if DEFECT:
            logger.debug(f"{name}: value {parameter.data} gradient {parameter.grad}")  # DEFECT
        elif logger.isEnabledFor(logging.DEBUG):
            logger.debug("%s: value %s gradient %s", name, parameter.data, parameter.grad)


def main():
    model = torch.nn.Sequential(torch.nn.Linear(320, 640), torch.nn.Tanh(), torch.nn.Linear(640, 64), torch.nn.Tanh(),
                                torch.nn.Linear(64, 640), torch.nn.Tanh(), torch.nn.Linear(640, 320))
    optimizer = torch.optim.Adam(model.parameters())
    data = torch.randn(4, args.batch, 320)
    times, total = Times(), 0.0
    for step in range(args.steps):
        before = time.perf_counter_ns()
        x = data[step % 4]
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(model(x), x)
        loss.backward()
        watch(model)
        optimizer.step()
        total += loss.item()
        times.append(time.perf_counter_ns() - before)
    report(times, total)


main()
