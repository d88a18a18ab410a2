"""Messages of two ranks with gloo. Each rank writes down what it sent and received, in order, and for how long."""

import json
import time

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
rank = dist.get_rank()
other = 1 - rank
pair = dist.new_group([1, 0])
noted = []


def tensor(size):
    return torch.full((size,), rank, dtype=torch.int16)


def note(direction, tag, size, group=None):
    noted.append([direction, (group or dist.group.WORLD).group_name, other, tag, 2 * size])


if rank == 0:
    time.sleep(0.2)  # the receiver waits for it
    dist.send(tensor(10), 1, tag=3)
    dist.send(tensor(20), 1)
    dist.send(tensor(30), 1, group=pair)
    note("send", 3, 10), note("send", 0, 20), note("send", 0, 30, pair)
else:
    began = time.monotonic_ns()
    received = tensor(10)
    dist.recv(received, 0, tag=3)
    waited_ns = time.monotonic_ns() - began
    assert received.tolist() == [0] * 10
    assert dist.recv(tensor(20)) == 0  # from anyone
    dist.recv(tensor(30), 0, group=pair)
    note("receive", 3, 10), note("receive", 0, 20), note("receive", 0, 30, pair)

for size in range(1, 6):  # both ways at once, with work in between
    here, there = tensor(size), torch.zeros(size, dtype=torch.int16)
    works = [dist.isend(here, other, tag=7), dist.irecv(there, other, tag=7)]
    torch.ones(10).sum()
    for work in works:
        assert work.wait()
    assert there.tolist() == [other] * size
    note("send", 7, size), note("receive", 7, size)

for work in dist.batch_isend_irecv(
    [dist.P2POp(dist.isend, tensor(8), other), dist.P2POp(dist.irecv, tensor(8), other)]
):
    work.wait()
note("send", 0, 8), note("receive", 0, 8)
dist.all_reduce(torch.ones(1))
dist.destroy_process_group()
with open(f"noted-{rank}.json", "w") as file:
    json.dump({"noted": noted, "waited_ns": waited_ns if rank else 0}, file)
