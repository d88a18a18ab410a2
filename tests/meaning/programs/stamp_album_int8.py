"""Finds stamps of an album in a catalogue: an encoder with weights kept in eight bits embeds crops of the scans,
batch by batch, and each is compared with all stamps of the catalogue. The loop is a list comprehension. Planted:
`PackedLinear.weight` turns the whole matrix back into floats for every batch, which costs more than the product with
24 rows; memory is no matter here. Truth: 160 batches of the album (15 batches of the catalogue are embedded before
it, another loop and much shorter), limited by operators. The gain is the measured time of unpacking in the loop less
that of unpacking all layers once. There is no training; phases are `crop`, `encode` and `match`.
"""

import sys
import time

import torch
import torch.nn.functional as F
from torch import nn
from truth import problem, tile, write

SIDE, STAMPS, BATCH = 28, 360, 24


class PackedLinear(nn.Module):
    unpacking = 0

    def __init__(self, dense):
        super().__init__()
        scale = dense.weight.detach().abs().amax(1, keepdim=True) / 127
        self.register_buffer("packed", (dense.weight.detach() / scale).round().to(torch.int8))
        self.register_buffer("scale", scale)
        self.register_buffer("bias", dense.bias.detach())

    def weight(self):
        begin = time.monotonic_ns()
        whole = self.packed.to(torch.float32) * self.scale
        PackedLinear.unpacking += time.monotonic_ns() - begin
        return whole

    def forward(self, x):
        return F.linear(x, self.weight(), self.bias)


def pack(model):
    for name, child in model.named_children():
        setattr(model, name, PackedLinear(child) if isinstance(child, nn.Linear) else pack(child))
    return model


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm(width), nn.Linear(width, 3 * width), nn.Linear(3 * width, width)

    def forward(self, x):
        return x + self.down(F.gelu(self.up(self.norm(x))))


class Encoder(nn.Sequential):
    def __init__(self, width=640, depth=3, out=128):
        super().__init__(nn.Flatten(), nn.Linear(3 * SIDE * SIDE, width), *(Block(width) for _ in range(depth)))
        self.append(nn.Linear(width, out))


class Album:
    """Pages with stamps on a grid; a crop is shifted and brightened a little, as scans are."""

    def __init__(self, designs, pages, per_page=48):
        self.shown = torch.randint(len(designs), (pages * per_page,))
        self.scans = [designs[k] + 0.15 * torch.randn(3, SIDE, SIDE) for k in self.shown.tolist()]

    def crops(self, size):
        for start in range(0, len(self.scans), size):
            chosen = [scan.roll((start // size) % 2, 1) for scan in self.scans[start : start + size]]
            batch = torch.stack(chosen)
            yield (batch - batch.mean((1, 2, 3), keepdim=True)) / batch.std((1, 2, 3), keepdim=True)


class Catalogue:
    def __init__(self, encoder, designs):
        self.encoder = encoder
        self.known = torch.cat([self.embed(part) for part in designs.split(BATCH)])
        self.spent, self.cuts = {"crop": 0, "encode": 0, "match": 0}, []

    def embed(self, images):
        return F.normalize(self.encoder(images), dim=1)

    def match(self, images):
        t0 = time.monotonic_ns()
        found = self.embed(images)
        t1 = time.monotonic_ns()
        closeness, stamp = (found @ self.known.T).topk(3, dim=1)
        answer = list(zip(stamp[:, 0].tolist(), (closeness[:, 0] - closeness[:, 1]).tolist(), strict=True))
        self.spent["crop"] += t0 - self.cuts[-1]
        self.spent["encode"] += t1 - t0
        self.cuts.append(time.monotonic_ns())
        self.spent["match"] += self.cuts[-1] - t1
        return answer


@torch.inference_mode()
def main(pages=80):
    torch.manual_seed(6)
    torch.set_num_threads(1)
    designs = F.interpolate(torch.randn(STAMPS, 3, 7, 7), size=SIDE, mode="bilinear")
    catalogue = Catalogue(pack(Encoder()).eval(), designs)
    album = Album(designs, pages)
    before = PackedLinear.unpacking
    catalogue.cuts.append(time.monotonic_ns())
    answers = [catalogue.match(crops) for crops in album.crops(BATCH)]
    unpacking = PackedLinear.unpacking - before
    sure = sum(gap > 0.02 for batch in answers for _, gap in batch)
    named = [stamp for batch in answers for stamp, _ in batch]
    right = sum(a == b for a, b in zip(named, album.shown.tolist(), strict=True))
    print(f"{len(named)} stamps, {right} named rightly, {sure} surely", file=sys.stderr)

    before = PackedLinear.unpacking
    for layer in catalogue.encoder.modules():
        if isinstance(layer, PackedLinear):
            layer.weight()
    once = PackedLinear.unpacking - before
    found = problem(
        "all weights are turned from eight bits into floats for every batch",
        "stamp_album_int8.py:PackedLinear.weight",
        "operators",
        wasted_ns=unpacking - once,
    )
    fields = {"limiting": "operators", "phases_ns": catalogue.spent, "problem": found}
    write(tile(catalogue.cuts, "batch"), unit="batch", **fields)


if __name__ == "__main__":
    main()
