"""Encoder over sequences of different lengths with a mask for the padding."""
import argparse, json, statistics, time
import torch
from torch import nn

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--defect", choices=["on", "off"], default="on")
parser.add_argument("--steps", type=int, default=120)
parser.add_argument("--batch", type=int, default=24)
parser.add_argument("--longest", type=int, default=64)
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

def padding_mask(lengths, longest):
    """True where a sequence is padded."""
    if DEFECT:
        mask = torch.zeros(len(lengths), longest, dtype=torch.bool)
        for row, length in enumerate(lengths):
            for place in range(longest):
                if place >= length:
                    mask[row, place] = True  # DEFECT
        return mask
    return torch.arange(longest) >= lengths[:, None]


class Model(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.words = nn.Embedding(500, width)
        self.attention = nn.MultiheadAttention(width, 4, batch_first=True)
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, 6)

    def forward(self, tokens, lengths):
        mask = padding_mask(lengths, tokens.shape[1])
        x = self.words(tokens)
        x = self.norm(x + self.attention(x, x, x, key_padding_mask=mask, need_weights=False)[0])
        x = x.masked_fill(mask[:, :, None], 0).sum(1) / lengths[:, None]
        return self.head(x)


model = Model()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
tokens, labels = torch.randint(0, 500, (5, args.batch, args.longest)), torch.randint(0, 6, (5, args.batch))
lengths = torch.randint(4, args.longest + 1, (5, args.batch))
lengths[:, 0] = args.longest
times, total = Times(), 0.0
for step in range(args.steps):
    before = time.perf_counter_ns()
    loss = nn.functional.cross_entropy(model(tokens[step % 5], lengths[step % 5]), labels[step % 5])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    total += loss.item()
    times.append(time.perf_counter_ns() - before)
report(times, total)
