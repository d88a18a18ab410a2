"""Denoiser trained on patches, one file each."""
import argparse, json, os, pathlib, shutil, statistics, tempfile, time
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--defect", choices=["on", "off"], default="on")
parser.add_argument("--steps", type=int, default=150)
parser.add_argument("--batch", type=int, default=12)
parser.add_argument("--files", type=int, default=220)
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

def write_patches(folder):
    rng = np.random.default_rng(3)
    for number in range(args.files):
        np.save(folder / f"patch_{number:05d}.npy", rng.random((16, 16), dtype=np.float32))


class PatchFolder(Dataset):
    def __init__(self, folder, count):
        self.folder, self.count = folder, count
        self.paths = self.find()

    def find(self):
        return sorted(self.folder.glob("patch_*.npy"))

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        paths = self.find() if DEFECT else self.paths  # DEFECT
        return torch.from_numpy(np.load(paths[index * 7 % len(paths)])).flatten()


folder = pathlib.Path(tempfile.mkdtemp())
write_patches(folder)
model = nn.Sequential(nn.Linear(256, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 256))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
noise = torch.randn(args.batch, 256) * 0.1
times, total = Times(), 0.0
before = time.perf_counter_ns()
for clean in DataLoader(PatchFolder(folder, args.batch * args.steps), batch_size=args.batch):
    loss = nn.functional.mse_loss(model(clean + noise), clean)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    total += loss.item()
    now = time.perf_counter_ns()
    times.append(now - before)
    before = now
shutil.rmtree(folder)
report(times, total)
