"""An asyncio service that estimates arrival of parcels: requests are put into a queue, a batcher serves them together.

Truth: 120 batches. The batcher waits up to 30 ms for 32 requests, but only six clients exist, each of which waits for its answer:
no batch ever fills, and the loop is idle most of the time (starvation; one may say synchronisation). The gain is the wait after
the sixth request has come, measured in every batch.
"""

import asyncio
import time

import torch
from torch import nn
from truth import problem, tile, write

MAX_BATCH, MAX_WAIT, CLIENTS, ROUNDS = 32, 0.030, 6, 120


class Batcher:
    def __init__(self, model):
        self.model = model
        self.queue = asyncio.Queue()
        self.cuts = []
        self.model_ns = 0
        self.collect_ns = 0
        self.idle_ns = 0

    async def predict(self, features):
        answer = asyncio.get_running_loop().create_future()
        await self.queue.put((features, answer))
        return await answer

    async def collect(self):
        batch = [await self.queue.get()]
        last = time.monotonic_ns()
        loop = asyncio.get_running_loop()
        deadline = loop.time() + MAX_WAIT
        while len(batch) < MAX_BATCH:
            left = deadline - loop.time()
            if left <= 0:
                break
            try:
                batch.append(await asyncio.wait_for(self.queue.get(), left))
                last = time.monotonic_ns()
            except TimeoutError:
                break
        self.idle_ns += time.monotonic_ns() - last
        return batch

    @torch.inference_mode()
    def infer(self, batch):
        return self.model(torch.stack([features for features, _ in batch])).squeeze(1).tolist()

    async def run(self, rounds):
        self.cuts.append(time.monotonic_ns())
        for _ in range(rounds):
            batch = await self.collect()
            begin = time.monotonic_ns()
            self.collect_ns += begin - self.cuts[-1]
            hours = self.infer(batch)
            self.model_ns += time.monotonic_ns() - begin
            for (_, answer), hour in zip(batch, hours, strict=True):
                answer.set_result(hour)
            self.cuts.append(time.monotonic_ns())


async def client(service, number, results):
    generator = torch.Generator().manual_seed(number)
    for _ in range(ROUNDS):
        results.append(await service.predict(torch.randn(64, generator=generator)))


async def main():
    torch.manual_seed(1)
    torch.set_num_threads(1)
    model = nn.Sequential(nn.Linear(64, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 1)).eval()
    service, results = Batcher(model), []
    async with asyncio.TaskGroup() as group:
        group.create_task(service.run(ROUNDS))
        for number in range(CLIENTS):
            group.create_task(client(service, number, results))
    assert len(results) == ROUNDS * CLIENTS
    print(f"{len(results)} estimates, mean {sum(results) / len(results):.3f}")
    write(
        tile(service.cuts, "batch"),
        unit="batch",
        limiting="starvation",
        limiting_also=["synchronisation"],
        phases_ns={"collect": service.collect_ns, "inference": service.model_ns},
        problem=problem(
            "the batcher waits for a batch that can never fill",
            "parcel_eta_service.py:Batcher.collect",
            "starvation",
            wasted_ns=service.idle_ns,
        ),
    )


asyncio.run(main())
