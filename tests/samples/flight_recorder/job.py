"""Three ranks; rank 1 leaves out the last all-reduce. Each writes its dump into the folder that is given."""

import os
import sys
import time
from pathlib import Path

import torch
import torch.distributed as dist
from torch._C import _distributed_c10d as c10d


def main(folder: Path) -> None:
    dist.init_process_group("gloo")
    rank, ranks = dist.get_rank(), dist.get_world_size()
    half = dist.new_group([0, 1], group_desc="half")
    for _ in range(3):
        dist.all_reduce(torch.ones(16))
    if rank < 2:
        dist.all_reduce(torch.ones(4), group=half)
    pieces = [torch.ones(5) for _ in range(ranks)]
    dist.all_gather(pieces, torch.ones(5))
    if rank != 1:
        dist.all_reduce(torch.ones(32, dtype=torch.float64), async_op=True)
    time.sleep(1)
    (folder / "pickles" / f"gloo_rank_{rank}").write_bytes(c10d._dump_fr_trace())
    (folder / "json" / f"gloo_rank_{rank}.json").write_bytes(c10d._dump_fr_trace_json())
    os._exit(0)


main(Path(sys.argv[1]))
