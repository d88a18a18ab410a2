"""An asyncio queue with one producer and three workers that fetch (a short sleep), parse and store: a step is a job."""

import asyncio
import os
import time

begins = []


async def fetch(number):
    await asyncio.sleep(0.001)
    return f"{number}:" + ",".join(str(number * k % 97) for k in range(60))


def parse(text):
    head, _, tail = text.partition(":")
    return int(head), [int(word) for word in tail.split(",")]


def store(table, key, values):
    table[key] = sum(values)


async def worker(queue, table):
    while True:
        number = await queue.get()
        text = await fetch(number)
        begins.append(time.monotonic_ns())
        key, values = parse(text)
        store(table, key, values)
        queue.task_done()


async def main():
    queue, table = asyncio.Queue(maxsize=6), {}
    workers = [asyncio.create_task(worker(queue, table)) for _ in range(3)]
    for number in range(400):
        await queue.put(number)
    await queue.join()
    for each in workers:
        each.cancel()
    print(len(table), sum(table.values()))


asyncio.run(main())
with open(os.path.join(os.environ["CORPUS_TRUTH"], str(os.getpid())), "w") as out:
    out.writelines(f"job {ns}\n" for ns in begins)
