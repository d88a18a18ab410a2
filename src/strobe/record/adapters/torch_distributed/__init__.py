"""Collectives of torch.distributed: what each of them moves, in which group, as its how many-eth; DDP's buckets."""

from __future__ import annotations

from strobe.record.adapter import Adapter

ADAPTER = Adapter(
    "torch_distributed",
    short="distributed",
    order=30,
    presets=("auto", "light", "sampling"),
    hooks="strobe.record.adapters.torch_distributed.hooks",
)
