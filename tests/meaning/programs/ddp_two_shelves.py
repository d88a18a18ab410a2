# run: torchrun --nproc_per_node 2
"""DistributedDataParallel (gloo) on two ranks, each of which reads its own half of the recordings, item by item.

The first half lies on the local disk, the second on a mount that takes 1.5 ms for each item. Truth: 60 updates;
rank 0 waits in backward for rank 1 (straggler), which waits for its data. The gain is measured: what rank 1 spends on
data more than rank 0.
"""

import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Dataset
from truth import problem, tile, write


class Recordings(Dataset):
    def __init__(self, first, count, access_time):
        self.first, self.count, self.access_time = first, count, access_time

    def __len__(self):
        return self.count

    def __getitem__(self, i):
        if self.access_time:
            time.sleep(self.access_time)
        number = self.first + i
        return torch.sin(torch.arange(256) * (0.01 + number % 5)), number % 5


dist.init_process_group("gloo")
rank = dist.get_rank()
torch.set_num_threads(1)
torch.manual_seed(3)
local, mount = Recordings(0, 1920, 0), Recordings(1920, 1920, 0.0015)
loader = DataLoader(mount if rank else local, batch_size=32, shuffle=True)
model = DDP(nn.Sequential(nn.Linear(256, 512), nn.GELU(), nn.Linear(512, 512), nn.GELU(), nn.Linear(512, 5)))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
criterion = nn.CrossEntropyLoss()

dist.barrier()
data = fw = bw = up = 0
cuts = [time.monotonic_ns()]
for n, (signal, kind) in enumerate(loader):
    a = time.monotonic_ns()
    loss = criterion(model(signal), kind)
    b = time.monotonic_ns()
    loss.backward()
    c = time.monotonic_ns()
    optimizer.step()
    optimizer.zero_grad()
    if rank == 0 and n % 20 == 0:
        print(f"{n:3d} {loss.item():.4f}", flush=True)
    d = time.monotonic_ns()
    data, fw, bw, up = data + a - cuts[-1], fw + b - a, bw + c - b, up + d - c
    cuts.append(d)

spent_on_data = [0, 0]
dist.all_gather_object(spent_on_data, data)
dist.destroy_process_group()
write(
    tile(cuts),
    unit="optimizer update",
    rank=rank,
    limiting="straggler",
    limiting_rank=1,
    limiting_also=["data"],
    phases_ns={"data": data, "forward": fw, "backward": bw, "optimizer": up},
    problem=problem(
        "rank 1 reads its items one by one from a slow mount",
        "ddp_two_shelves.py:Recordings.__getitem__",
        "straggler",
        wasted_ns=spent_on_data[1] - spent_on_data[0],
    ),
)
