"""Beam search with a recurrent decoder."""
import argparse, json, statistics, time
import torch
from torch import nn

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--defect", choices=["on", "off"], default="on")
parser.add_argument("--steps", type=int, default=150)
parser.add_argument("--width", type=int, default=640)
parser.add_argument("--vocabulary", type=int, default=1500)
parser.add_argument("--beams", type=int, default=5)
args = parser.parse_args()
DEFECT = args.defect == "on"
torch.set_num_threads(1)
torch.manual_seed(0)
LONGEST = 25

class Times(list):
    def append(self, duration_ns):
        super().append(duration_ns)
        if len(self) == 10:
            self.cpu_at_10 = time.process_time()


def report(times, check=None):
    kept = [t / 1e6 for t in times[10:]]
    print(json.dumps({"step_ms_median": round(statistics.median(kept), 4), "step_ms_mean": round(statistics.fmean(kept), 4),
                      "cpu_ms_mean": round((time.process_time() - times.cpu_at_10) * 1e3 / len(kept), 4), "steps": len(times), "check": check}))

class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(args.vocabulary, args.width)
        self.cells = nn.ModuleList(nn.GRUCell(args.width, args.width) for _ in range(3))
        self.head = nn.Linear(args.width, args.vocabulary)

    def forward(self, tokens, states):
        x, fresh = self.words(tokens), []
        for cell, state in zip(self.cells, states):
            x = cell(x, state)
            fresh.append(x)
        return self.head(x).log_softmax(1), fresh


class BeamSearch:
    def __init__(self, model):
        self.model, self.started, self.sum = model, 0, 0.0
        self.restart()

    def restart(self):
        self.started += 1
        self.scores = torch.tensor([0.0] + [-1e9] * (args.beams - 1))
        self.tokens = torch.full((args.beams,), self.started)
        self.states = [torch.zeros(args.beams, args.width) for _ in self.model.cells]
        self.length = 0

    def best(self, scores):
        """The best continuations of all beams: their scores, beams and tokens."""
        if DEFECT:
            found = [(score, beam, token) for beam, row in enumerate(scores.tolist()) for token, score in enumerate(row)]
            found.sort(key=lambda item: item[0], reverse=True)  # DEFECT
            scores, beams, tokens = zip(*found[:args.beams])
            return torch.tensor(scores), torch.tensor(beams), torch.tensor(tokens)
        scores, places = scores.flatten().topk(args.beams)
        return scores, places // args.vocabulary, places % args.vocabulary

    def step(self):
        logs, states = self.model(self.tokens, self.states)
        self.scores, beams, self.tokens = self.best(self.scores[:, None] + logs)
        self.states = [state[beams] for state in states]
        self.length += 1
        if self.length == LONGEST:
            self.sum += self.scores[0].item()
            self.restart()


with torch.inference_mode():
    search = BeamSearch(Decoder().eval())
    times = Times()
    while len(times) < args.steps:
        before = time.perf_counter_ns()
        search.step()
        times.append(time.perf_counter_ns() - before)
report(times, search.sum)
