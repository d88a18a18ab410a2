"""Small image classifier whose data set brightens every image."""
import argparse, json, os, statistics, time
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--defect", choices=["on", "off"], default="on")
parser.add_argument("--steps", type=int, default=130)
parser.add_argument("--batch", type=int, default=24)
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

def brighten(image, gain, bias):
    if DEFECT:
        out = np.empty(image.shape, np.float32)
        for y in range(image.shape[0]):
            for x in range(image.shape[1]):
                out[y, x] = min(255.0, image[y, x] * gain + bias)  # DEFECT
        return out
    return np.minimum(255.0, image.astype(np.float32) * np.float32(gain) + np.float32(bias))


class Patches(Dataset):
    def __init__(self, count):
        rng = np.random.default_rng(1)
        self.images = rng.integers(0, 256, (512, 32, 32)).astype(np.float32)
        self.count = count

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        image = brighten(self.images[index % 512], 0.5 + index % 7 / 8, float(index % 5))
        return torch.from_numpy(image).flatten() / 255, index % 10


model = torch.nn.Sequential(torch.nn.Linear(1024, 1024), torch.nn.ReLU(), torch.nn.Linear(1024, 1024), torch.nn.ReLU(),
                            torch.nn.Linear(1024, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
times, total = Times(), 0.0
before = time.perf_counter_ns()
for images, labels in DataLoader(Patches(args.batch * args.steps), batch_size=args.batch):
    optimizer.zero_grad()
    loss = torch.nn.functional.cross_entropy(model(images), labels)
    loss.backward()
    optimizer.step()
    total += loss.item()
    now = time.perf_counter_ns()
    times.append(now - before)
    before = now
report(times, total)
