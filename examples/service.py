"""A service that answers requests for orders, with a client beside it. One of its pages is slow: which one?

Usage: python service.py [--requests N]. Needs FastAPI and uvicorn.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import socket

import uvicorn
from fastapi import FastAPI

app = FastAPI()
ORDERS = [{"number": number, "customer": number % 97, "price": number * 31 % 1000} for number in range(3000)]


@app.get("/order/{number}")
async def order(number: int) -> dict[str, int]:
    """One order."""
    await asyncio.sleep(0.001)  # a database answers
    return ORDERS[number % len(ORDERS)]


@app.get("/total/{customer}")
async def total(customer: int) -> dict[str, int]:
    """What a customer has spent."""
    await asyncio.sleep(0.001)
    return {"total": sum(each["price"] for each in ORDERS if each["customer"] == customer)}


@app.get("/statement/{customer}")
async def statement(customer: int) -> dict[str, int]:
    """The size of a customer's statement. It makes those of all customers: nothing else is answered meanwhile."""
    await asyncio.sleep(0.001)
    return {"bytes": len(statements()[customer])}


def statements() -> list[str]:
    """The statements of all customers."""
    return [json.dumps([each for each in ORDERS if each["customer"] == customer]) for customer in range(97)]


async def ask(port: int, requests: int) -> int:
    """Ask for pages, four at a time; return how many answers were good."""
    pages = [("order", 1), ("total", 5), ("statement", 20)]

    async def ask_some(first: int) -> int:
        good = 0
        for number in range(first, requests, 4):
            page = next(page for page, every in reversed(pages) if number % every == 0)
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(f"GET /{page}/{number % 97} HTTP/1.1\r\nHost: service\r\nConnection: close\r\n\r\n".encode())
            good += (await reader.read()).startswith(b"HTTP/1.1 200")
            writer.close()
        return good

    return sum(await asyncio.gather(*(ask_some(first) for first in range(4))))


async def main(requests: int) -> None:
    """Serve until the client has its answers."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()  # so that the client can come before the server is ready
        server = uvicorn.Server(uvicorn.Config(app, log_level="warning"))
        serving = asyncio.create_task(server.serve(sockets=[listening]))
        good = await ask(listening.getsockname()[1], requests)
        server.should_exit = True
        await serving
    print(f"{good} of {requests} requests were answered")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--requests", type=int, default=400)
    asyncio.run(main(parser.parse_args().requests))
