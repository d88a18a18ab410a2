"""Training from shards of 16 batches each."""
import argparse, bz2, json, os, statistics, tempfile, time
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
import numpy as np
import torch

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--defect", choices=["on", "off"], default="on")
parser.add_argument("--steps", type=int, default=112)
parser.add_argument("--batch", type=int, default=128)
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

class ShardReader:
    def __init__(self, folder):
        rng = np.random.default_rng(3)
        self.folder, self.at, self.shard = folder, 0, None
        for number in range(2):
            data = rng.integers(0, 8, (16, args.batch, 1536)).astype(np.uint8)
            np.save(f"{folder}/{number}.npy", data)
            with open(f"{folder}/{number}.bz2", "wb") as out:
                out.write(bz2.compress(data.tobytes(), 1))

    def _open(self, number):
        if DEFECT:
            with open(f"{self.folder}/{number}.bz2", "rb") as file:
                data = bz2.decompress(file.read())  # DEFECT
            return np.frombuffer(data, np.uint8).reshape(16, args.batch, 1536)
        return np.load(f"{self.folder}/{number}.npy", mmap_mode="r")

    def next_batch(self):
        if self.at % 16 == 0:
            self.shard = self._open(self.at // 16 % 2)
        batch = torch.from_numpy(self.shard[self.at % 16].astype(np.float32))
        self.at += 1
        return batch


with tempfile.TemporaryDirectory() as folder:
    reader = ShardReader(folder)
    encoder = torch.nn.Linear(1536, 384)
    decoder = torch.nn.Linear(384, 1536)
    optimizer = torch.optim.SGD([*encoder.parameters(), *decoder.parameters()], lr=1e-3)
    times, total = Times(), 0.0
    for step in range(args.steps):
        before = time.perf_counter_ns()
        batch = reader.next_batch()
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(decoder(torch.relu(encoder(batch))), batch)
        loss.backward()
        optimizer.step()
        total += loss.item()
        times.append(time.perf_counter_ns() - before)
report(times, total)
