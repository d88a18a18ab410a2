"""Embedding of frames with one loader worker."""
import argparse, json, statistics, time
import torch
from torch.utils.data import DataLoader, Dataset

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--defect", choices=["on", "off"], default="on")
parser.add_argument("--steps", type=int, default=200)
parser.add_argument("--batch", type=int, default=80)
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

class Frames(Dataset):
    def __init__(self, count):
        self.count = count
        self.frames = torch.rand(200, 6144)

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        return self.frames[index % 200], index % 16


class Merge:
    """Joins the items of a batch."""

    def __call__(self, items):
        labels = torch.tensor([label for _, label in items])
        if not DEFECT:
            return torch.stack([frame for frame, _ in items]), labels
        frames = items[0][0][None]
        for frame, _ in items[1:]:
            frames = torch.cat([frames, frame[None]])  # DEFECT
        return frames, labels


def main():
    loader = DataLoader(Frames(args.batch * args.steps), batch_size=args.batch, num_workers=1, collate_fn=Merge())
    model = torch.nn.Sequential(torch.nn.Linear(6144, 256), torch.nn.ReLU(), torch.nn.Linear(256, 16))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    times, total = Times(), 0.0
    before = time.perf_counter_ns()
    for frames, labels in loader:
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(frames), labels)
        loss.backward()
        optimizer.step()
        total += loss.item()
        now = time.perf_counter_ns()
        times.append(now - before)
        before = now
    report(times, total)


if __name__ == "__main__":
    main()
