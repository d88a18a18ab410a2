"""Classifier of short texts that are split into word pieces."""
import argparse, collections, json, random, statistics, time
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--defect", choices=["on", "off"], default="on")
parser.add_argument("--steps", type=int, default=150)
parser.add_argument("--batch", type=int, default=32)
parser.add_argument("--words", type=int, default=24)
args = parser.parse_args()
DEFECT = args.defect == "on"
torch.set_num_threads(1)
torch.manual_seed(0)
random.seed(0)

class Times(list):
    def append(self, duration_ns):
        super().append(duration_ns)
        if len(self) == 10:
            self.cpu_at_10 = time.process_time()


def report(times, check=None):
    kept = [t / 1e6 for t in times[10:]]
    print(json.dumps({"step_ms_median": round(statistics.median(kept), 4), "step_ms_mean": round(statistics.fmean(kept), 4),
                      "cpu_ms_mean": round((time.process_time() - times.cpu_at_10) * 1e3 / len(kept), 4), "steps": len(times), "check": check}))

def merge(parts, pair):
    merged, i = [], 0
    while i < len(parts):
        if i + 1 < len(parts) and (parts[i], parts[i + 1]) == pair:
            merged.append(parts[i] + parts[i + 1])
            i += 2
        else:
            merged.append(parts[i])
            i += 1
    return merged


def learn(words, rounds):
    split, ranks = [list(word) for word in words], {}
    for rank in range(rounds):
        counts = collections.Counter(pair for parts in split for pair in zip(parts, parts[1:]))
        pair = max(counts, key=lambda p: (counts[p], p))
        ranks[pair] = rank
        split = [merge(parts, pair) for parts in split]
    return ranks


class Tokenizer:
    def __init__(self, words):
        self.ranks, self.numbers, self.known = learn(words, 80), {}, {}

    def pieces(self, word):
        parts = list(word)
        while len(parts) > 1:
            pair = min(zip(parts, parts[1:]), key=lambda p: self.ranks.get(p, 1e9))  # DEFECT
            if pair not in self.ranks:
                break
            parts = merge(parts, pair)
        return [sum(map(ord, part)) * 31 % 4096 for part in parts]

    def encode(self, text):
        numbers = []
        for word in text.split():
            if DEFECT:
                numbers += self.pieces(word)
            else:
                if word not in self.known:
                    self.known[word] = self.pieces(word)
                numbers += self.known[word]
        return numbers


class Texts(Dataset):
    def __init__(self, count):
        syllables = ["ka", "tor", "mi", "sel", "an", "du", "ri", "pol", "en", "sa", "ver", "lo"]
        words = sorted({"".join(random.choices(syllables, k=random.randint(2, 4))) for _ in range(700)})
        self.texts = [" ".join(random.choices(words, k=args.words)) for _ in range(900)]
        self.tokenizer, self.count = Tokenizer(words[:250]), count

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        return self.tokenizer.encode(self.texts[index % 900]), index % 900 % 7


def collate(samples):
    numbers = torch.tensor([n for encoded, _ in samples for n in encoded])
    starts = torch.tensor([0] + [len(encoded) for encoded, _ in samples[:-1]]).cumsum(0)
    return numbers, starts, torch.tensor([label for _, label in samples])


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.bag = nn.EmbeddingBag(4096, 512, sparse=True)
        self.head = nn.Sequential(nn.Linear(512, 1024), nn.ReLU(), nn.Linear(1024, 512), nn.ReLU(), nn.Linear(512, 7))

    def forward(self, numbers, starts):
        return self.head(self.bag(numbers, starts))


model = Classifier()
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
loader = DataLoader(Texts(args.batch * args.steps), batch_size=args.batch, collate_fn=collate)
times, total = Times(), 0.0
before = time.perf_counter_ns()
for numbers, starts, labels in loader:
    loss = nn.functional.cross_entropy(model(numbers, starts), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    total += loss.item()
    now = time.perf_counter_ns()
    times.append(now - before)
    before = now
report(times, total)
