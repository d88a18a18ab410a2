"""Contrastive training on songs: two encoders, a triplet loss whose hardest negatives are sought in Python with .item().

Truth: 60 updates, limited by python: `hardest_negative` reads 64 x 64 similarities one by one. One masked max
finds the same; its time is measured afterwards on the same matrices, and the difference is the gain. What each read costs is
Python and the dispatch of tiny native calls: one may say operators or launch.
"""

import time

import torch
import torch.nn.functional as F
from torch import nn
from truth import problem, tile, write


class Tower(nn.Module):
    def __init__(self, inputs, width=96, out=48):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(inputs, width), nn.ReLU(), nn.Linear(width, out))

    def forward(self, x):
        return F.normalize(self.layers(x), dim=-1)


def hardest_negative(similarity, artist):
    chosen = []
    for i in range(similarity.shape[0]):
        best, where = -2.0, 0
        for j in range(similarity.shape[1]):
            if artist[i].item() != artist[j].item():
                value = similarity[i, j].item()
                if value > best:
                    best, where = value, j
        chosen.append(where)
    return torch.tensor(chosen)


def hardest_negative_fast(similarity, artist):
    return similarity.masked_fill(artist[:, None] == artist[None, :], -2.0).argmax(1)


torch.manual_seed(14)
torch.set_num_threads(1)
audio, lyrics = Tower(128), Tower(80)
opt = torch.optim.Adam([{"params": audio.parameters()}, {"params": lyrics.parameters(), "lr": 5e-4}], lr=1e-3)
songs, words = torch.randn(1500, 128), torch.randn(1500, 80)
artists = torch.randint(0, 40, (1500,))

data = forward = backward = optimizer = slow = 0
mined = []
cuts = [time.monotonic_ns()]
for step in range(60):
    picks = torch.randint(0, 1500, (64,))
    s, w, artist = songs[picks], words[picks], artists[picks]
    t0 = time.monotonic_ns()
    a, b = audio(s), lyrics(w)
    similarity = a @ b.T
    m0 = time.monotonic_ns()
    negative = hardest_negative(similarity.detach(), artist)
    slow += time.monotonic_ns() - m0
    mined.append((similarity.detach(), artist, negative))
    loss = F.relu(0.2 - similarity.diagonal() + similarity[torch.arange(64), negative]).mean()
    t1 = time.monotonic_ns()
    opt.zero_grad()
    t2 = time.monotonic_ns()
    loss.backward()
    t3 = time.monotonic_ns()
    opt.step()
    t4 = time.monotonic_ns()
    data += t0 - cuts[-1]
    forward += t1 - t0
    backward += t3 - t2
    optimizer += t2 - t1 + t4 - t3
    cuts.append(t4)
print(f"loss {loss.item():.3f}")

fast = 0
for similarity, artist, negative in mined:
    begin = time.monotonic_ns()
    same = hardest_negative_fast(similarity, artist)
    fast += time.monotonic_ns() - begin
    assert torch.equal(same, negative)

write(
    tile(cuts),
    unit="optimizer update",
    limiting="python",
    phases_ns={"data": data, "forward": forward, "backward": backward, "optimizer": optimizer},
    problem=problem(
        "negatives are sought element by element with .item()",
        "song_pairs_contrastive.py:hardest_negative",
        "python",
        wasted_ns=slow - fast,
    ),
    limiting_also=["operators", "launch"],
)
