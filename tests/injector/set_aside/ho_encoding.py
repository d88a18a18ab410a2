"""Tiny transformer block with sine position encoding."""
import argparse, json, math, statistics, time
import torch

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--defect", choices=["on", "off"], default="on")
parser.add_argument("--steps", type=int, default=200)
parser.add_argument("--batch", type=int, default=1)
parser.add_argument("--length", type=int, default=320)
args = parser.parse_args()
DEFECT = args.defect == "on"
torch.set_num_threads(1)
torch.manual_seed(0)
WIDTH = 128

class Times(list):
    def append(self, duration_ns):
        super().append(duration_ns)
        if len(self) == 10:
            self.cpu_at_10 = time.process_time()


def report(times, check=None):
    kept = [t / 1e6 for t in times[10:]]
    print(json.dumps({"step_ms_median": round(statistics.median(kept), 4), "step_ms_mean": round(statistics.fmean(kept), 4),
                      "cpu_ms_mean": round((time.process_time() - times.cpu_at_10) * 1e3 / len(kept), 4), "steps": len(times), "check": check}))

def sine_table(length, width):
    rate = torch.exp(torch.arange(0, width, 2) * (-math.log(10000.0) / width))
    rows = []
    for position in range(length):
        angle = position * rate
        rows.append(torch.stack([angle.sin(), angle.cos()], 1).flatten())
    return torch.stack(rows)


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.attention = torch.nn.MultiheadAttention(WIDTH, 4, batch_first=True)
        self.mix = torch.nn.Sequential(torch.nn.Linear(WIDTH, 128), torch.nn.GELU(), torch.nn.Linear(128, WIDTH))
        self.register_buffer("table", sine_table(args.length, WIDTH))

    def positions(self, length):
        if DEFECT:
            return sine_table(length, WIDTH)  # DEFECT
        return self.table[:length]

    def forward(self, x):
        x = x + self.positions(x.shape[1])
        x = x + self.attention(x, x, x, need_weights=False)[0]
        return x + self.mix(x)


block = Block()
optimizer = torch.optim.SGD(block.parameters(), lr=0.01)
sequences = torch.randn(4, args.batch, args.length, WIDTH)
times, total = Times(), 0.0
for step in range(args.steps):
    before = time.perf_counter_ns()
    x = sequences[step % 4]
    loss = torch.nn.functional.mse_loss(block(x)[:, :-1], x[:, 1:])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    total += loss.item()
    times.append(time.perf_counter_ns() - before)
report(times, total)
