"""A run of several ranks written by hand: ids of regions and call paths differ between ranks, steps are marked."""

from __future__ import annotations

import random
from pathlib import Path

from strobe.api.imports import opened
from tests.deep.kineto import Event, call, copy, kernel, operator, step, write

KERNELS = ("ampere_sgemm_128x64_nn", "elementwise_kernel", "ncclKernel_AllReduce_RING_LL_Sum_float", "softmax_warp")
OPERATORS = ("aten::mm", "aten::add_", "aten::softmax", "aten::linear")
STEPS = 6


def events_of(rank: int) -> list[Event]:
    """What a rank does: always the same, but never what another does."""
    chance = random.Random(rank)
    found: list[Event] = []
    now, correlation = 100 * rank, 1
    for number in range(STEPS):
        begin, on_gpu = now, now + 40
        for _ in range(6):
            # Kernels and operators are met in another order on each rank: so they have other numbers in its file.
            name = OPERATORS[(chance.randrange(4) + rank) % 4]
            inside = chance.randrange(10, 40)
            found.append(operator(name, now, inside + 20))
            found.append(operator(OPERATORS[chance.randrange(4)], now + 2, inside))
            found.append(call(now + 4, 3, correlation=correlation))
            lasts = chance.randrange(5, 60)
            if chance.random() < 0.3:
                found.append(
                    copy("Memcpy HtoD (Pageable -> Device)", on_gpu, lasts, correlation=correlation, bytes=4096)
                )
            else:
                found.append(kernel(KERNELS[(chance.randrange(4) + rank) % 4], on_gpu, lasts, correlation=correlation))
            on_gpu += lasts + chance.randrange(5)
            now += inside + 30
            correlation += 1
        now = max(now, on_gpu) + 10
        found.append(step(number, begin, now - begin - 1))
    return found


def write_ranks(folder: Path, ranks: int) -> Path:
    """Write the profiles of so many ranks, import them, and return the trace folder."""
    folder.mkdir(exist_ok=True)
    for rank in range(ranks):
        write(folder / f"rank{rank}.json", *events_of(rank), rank=rank)
    return opened(folder, talk=False)
