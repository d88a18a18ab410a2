"""Collectives of two ranks with gloo. Each rank writes down what it asked for: bytes are counted from the tensors."""

import _thread
import json
import threading

import torch
import torch.distributed as dist
from torch.distributed import _functional_collectives as functional

dist.init_process_group("gloo")
rank, size = dist.get_rank(), dist.get_world_size()
other = 1 - rank
asked = []


def of(*tensors):
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors)


def note(collective, dtype, sent, received, root=None, group=None):
    ranks = dist.get_process_group_ranks(group or dist.group.WORLD)
    asked.append([collective, dtype, sent, received, root, str(ranks)])


ones = torch.ones(1000)
dist.all_reduce(ones)
assert ones[0] == 2
note("all_reduce", "Float", of(ones), of(ones))

longs = torch.full((7,), rank)
dist.broadcast(longs, 1)
assert longs.tolist() == [1] * 7
note("broadcast", "Long", of(longs) if rank == 1 else 0, 0 if rank == 1 else of(longs), 1)

parts = [torch.zeros(5, dtype=torch.float64) for _ in range(size)]
mine = torch.full((5,), rank, dtype=torch.float64)
dist.all_gather(parts, mine)
assert [part[0] for part in parts] == [0, 1]
note("all_gather", "Double", of(mine), of(*parts))

whole = torch.zeros(6, dtype=torch.bfloat16)
half = torch.ones(3, dtype=torch.bfloat16)
dist.all_gather_into_tensor(whole, half)
note("all_gather", "BFloat16", of(half), of(whole))

piece = torch.zeros(4)
dist.reduce_scatter_tensor(piece, torch.ones(8))
assert piece.tolist() == [2] * 4
note("reduce_scatter", "Float", 8 * 4, of(piece))

swapped, bytes_ = torch.zeros(10, dtype=torch.uint8), torch.full((10,), rank, dtype=torch.uint8)
dist.all_to_all_single(swapped, bytes_)
assert swapped.tolist() == [0] * 5 + [1] * 5
note("all_to_all", "Byte", of(bytes_), of(swapped))

dist.reduce(ones, 0)
note("reduce", "Float", of(ones), of(ones) if rank == 0 else 0, 0)
gathered = [torch.zeros(1000) for _ in range(size)] if rank == 0 else []
dist.gather(ones, gathered or None)
note("gather", "Float", of(ones), of(*gathered), 0)
dist.scatter(ones, gathered or None)
note("scatter", "Float", of(*gathered), of(ones), 0)

dist.barrier()
note("barrier", None, 0, 0)
dist.monitored_barrier()  # sends messages of its own, on rank 0 more than on rank 1

if rank == 0:
    dist.send(ones, 1)
    dist.isend(ones, 1).wait()
    note("send", "Float", of(ones), 0, 1)
    note("send", "Float", of(ones), 0, 1)
else:
    dist.recv(ones, 0)
    dist.recv(ones)
    note("recv", "Float", 0, of(ones), 0)
    note("recv", "Float", 0, of(ones))

# Asked for one after the other, on threads of gloo at the same time, of different size.
tensors = [torch.ones(100 * (i + 1)) for i in range(20)]
works = [dist.all_reduce(tensor, async_op=True) for tensor in tensors]
for work, tensor in zip(works, tensors, strict=True):
    work.wait()
    assert tensor[-1] == 2
    note("all_reduce", "Float", of(tensor), of(tensor))

pair, alone = dist.new_group([0, 1]), [dist.new_group([i]) for i in range(size)][rank]
dist.all_reduce(longs, group=pair)
note("all_reduce", "Long", of(longs), of(longs), None, pair)
dist.all_reduce(longs, group=alone)
note("all_reduce", "Long", of(longs), of(longs), None, alone)

reduced = functional.all_reduce(ones, "sum", pair)
reduced = reduced + 0  # waits
note("all_reduce", "Float", of(ones), of(ones), None, pair)

values = torch.tensor([1.0, 2.0])
dist.all_reduce(torch.sparse_coo_tensor(torch.tensor([[0, rank + 1]]), values, (10,), check_invariants=True))
note("all_reduce", "Float", of(values), of(values))

done = threading.Lock()
done.acquire()


def unobserved():  # a thread that PyTorch's observer does not know
    dist.all_reduce(piece)
    done.release()


_thread.start_new_thread(unobserved, ())
done.acquire()
note("all_reduce", "Float", of(piece), of(piece))

options = dist.BroadcastOptions()
options.rootRank = 7
refused = ""
try:
    dist.group.WORLD.broadcast([ones], options)
except RuntimeError as error:
    refused = str(error)
assert "invalid root rank: 7" in refused

torch.manual_seed(0)
model = torch.nn.Sequential(*(torch.nn.Linear(100, 100) for _ in range(4)))
ddp = torch.nn.parallel.DistributedDataParallel(model, process_group=pair, bucket_cap_mb=0.1)
for _ in range(3):
    ddp(torch.ones(2, 100)).sum().backward()
told = ddp._get_ddp_logging_data()
# After the first backward pass the buckets are put together anew, and stay.
buckets = [[int(each) for each in told[name].split(",")] for name in ("bucket_sizes", *["rebuilt_bucket_sizes"] * 2)]
of_model = of(*(parameter.grad for parameter in model.parameters()))
assert [sum(sizes) for sizes in buckets] == [of_model] * 3

dist.destroy_process_group()
with open(f"asked-{rank}.json", "w") as file:
    json.dump({"asked": asked, "buckets": buckets}, file)
