"""Three programs that do nothing but call Python functions; prints the least CPU nanoseconds of a call.

python benchmarks/workloads.py --tool none|viztracer [--rounds 7]      (strobe records it from outside: `strobe run`)
"""

import argparse
import contextlib
import json
import time


def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)


class Account:
    def __init__(self):
        self.balance = 0

    def add(self, amount):
        self.balance += amount
        return self.check()

    def check(self):
        return self.balance >= 0


def methods(count):
    account = Account()
    for n in range(count):
        account.add(n)


def numbers(count):
    yield from range(count)


def squares(count):
    for n in numbers(count):
        yield n * n


def generators(count):
    return sum(squares(count))


# Workload: function, argument, executions of Python frames (calls, and resumptions of generators) that it makes.
WORKLOADS = {
    "fib": (fib, 23, 92_735),
    "methods": (methods, 50_000, 100_001),
    "generators": (generators, 50_000, 100_003),
}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tool", choices=["none", "viztracer"], default="none")
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    if options.tool == "viztracer":
        from viztracer import VizTracer

        tool = VizTracer(tracer_entries=10_000_000, verbose=0)
    else:
        tool = contextlib.nullcontext()
    # "process" counts the recorder's background thread as well, "thread" only what the program waits for.
    clocks = {"process": time.process_time_ns, "thread": time.thread_time_ns}
    least = {(name, clock): 1 << 62 for name in WORKLOADS for clock in clocks}
    if options.tool == "viztracer":
        tool.start()
    for _ in range(options.rounds):
        for name, (function, argument, _) in WORKLOADS.items():
            start = {clock: now() for clock, now in clocks.items()}
            function(argument)
            for clock, now in clocks.items():
                least[name, clock] = min(least[name, clock], now() - start[clock])
    if options.tool == "viztracer":
        tool.stop()
    print(json.dumps({f"{name} {clock}": ns / WORKLOADS[name][2] for (name, clock), ns in least.items()}))


if __name__ == "__main__":
    main()
