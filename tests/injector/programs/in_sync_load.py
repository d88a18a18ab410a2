"""Training on batches from a remote store; a second process plays the store."""
import argparse, json, multiprocessing, os, statistics, time
from concurrent.futures import ThreadPoolExecutor
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
import numpy as np
import torch

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--defect", choices=["on", "off"], default="on")
parser.add_argument("--steps", type=int, default=200)
parser.add_argument("--batch", type=int, default=256)
parser.add_argument("--latency_ms", type=float, default=25)
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

def serve(pipe):
    """The store: needs latency_ms for each request, whoever asks."""
    table = np.random.default_rng(8).random((3, args.batch, 512), dtype=np.float32)
    while (number := pipe.recv()) is not None:
        time.sleep(args.latency_ms / 1e3)
        pipe.send_bytes(table[number % 3].tobytes())


class BatchSource:
    def __init__(self, pipe, steps):
        self.pipe, self.steps = pipe, steps

    def fetch(self, number):
        self.pipe.send(number)
        return torch.from_numpy(np.frombuffer(bytearray(self.pipe.recv_bytes()), np.float32).reshape(args.batch, 512))

    def __iter__(self):
        if DEFECT:
            for number in range(self.steps):
                yield self.fetch(number)  # DEFECT
            return
        with ThreadPoolExecutor(1) as pool:
            waiting = pool.submit(self.fetch, 0)
            for number in range(self.steps):
                ready = waiting.result()
                waiting = pool.submit(self.fetch, number + 1)
                yield ready


def main():
    near, far = multiprocessing.Pipe()
    store = multiprocessing.get_context("fork").Process(target=serve, args=(far,), daemon=True)
    store.start()
    model = torch.nn.Sequential(torch.nn.Linear(512, 1024), torch.nn.ReLU(), torch.nn.Linear(1024, 512))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    times, total = Times(), 0.0
    before = time.perf_counter_ns()
    for batch in BatchSource(near, args.steps):
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(model(batch), batch)
        loss.backward()
        optimizer.step()
        total += loss.item()
        now = time.perf_counter_ns()
        times.append(now - before)
        before = now
    near.send(None)
    report(times, total)


if __name__ == "__main__":
    main()
