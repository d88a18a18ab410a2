"""PyTorch's DataLoader: what its worker processes do for each batch."""

from __future__ import annotations

from strobe.record.adapter import Adapter

ADAPTER = Adapter(
    "data_loader",
    short="loader",
    order=40,
    presets=("auto", "light", "sampling"),
    hooks="strobe.record.adapters.data_loader.hooks",
)
