"""Greedy text generation with a small decoder."""
import argparse, json, statistics, time
import torch
from torch import nn
from torch.nn import functional as F

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--defect", choices=["on", "off"], default="on")
parser.add_argument("--steps", type=int, default=110)
parser.add_argument("--width", type=int, default=448)
parser.add_argument("--layers", type=int, default=6)
parser.add_argument("--prompt", type=int, default=6)
args = parser.parse_args()
DEFECT = args.defect == "on"
torch.set_num_threads(1)
torch.manual_seed(0)
VOCABULARY, HEADS = 2000, 8

class Times(list):
    def append(self, duration_ns):
        super().append(duration_ns)
        if len(self) == 10:
            self.cpu_at_10 = time.process_time()


def report(times, check=None):
    kept = [t / 1e6 for t in times[10:]]
    print(json.dumps({"step_ms_median": round(statistics.median(kept), 4), "step_ms_mean": round(statistics.fmean(kept), 4),
                      "cpu_ms_mean": round((time.process_time() - times.cpu_at_10) * 1e3 / len(kept), 4), "steps": len(times), "check": check}))

class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm_1, self.norm_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x, past=None):
        batch, length, width = x.shape
        q, k, v = (part.view(batch, length, HEADS, -1).transpose(1, 2) for part in self.qkv(self.norm_1(x)).chunk(3, -1))
        if past is not None:
            k, v = torch.cat([past[0], k], 2), torch.cat([past[1], v], 2)
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=past is None)
        x = x + self.out(mixed.transpose(1, 2).reshape(batch, length, width))
        return x + self.mlp(self.norm_2(x)), (k, v)


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.places = nn.Embedding(VOCABULARY, args.width), nn.Embedding(args.prompt + args.steps, args.width)
        self.blocks = nn.ModuleList(Block(args.width) for _ in range(args.layers))
        self.head = nn.Linear(args.width, VOCABULARY, bias=False)

    def forward(self, tokens, past=None):
        start = 0 if past is None else past[0][0].shape[2]
        x = self.words(tokens) + self.places(torch.arange(start, start + tokens.shape[1]))
        present = []
        for number, block in enumerate(self.blocks):
            x, kept = block(x, None if past is None else past[number])
            present.append(kept)
        return self.head(x[:, -1]), present


class Generator:
    def __init__(self, model, prompt):
        self.model, self.tokens, self.past = model, prompt, None

    def next_token(self):
        if DEFECT or self.past is None:
            logits, self.past = self.model(self.tokens)  # DEFECT
        else:
            logits, self.past = self.model(self.tokens[:, -1:], self.past)
        best = logits.argmax(1, keepdim=True)
        self.tokens = torch.cat([self.tokens, best], 1)
        return logits.logsumexp(1).item()


with torch.inference_mode():
    generator = Generator(Decoder().eval(), torch.randint(0, VOCABULARY, (1, args.prompt)))
    times, total = Times(), 0.0
    while len(times) < args.steps:
        before = time.perf_counter_ns()
        total += generator.next_token()
        times.append(time.perf_counter_ns() - before)
report(times, total)
