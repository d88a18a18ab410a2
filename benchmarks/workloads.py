"""Three programs that do nothing but call Python functions; prints calls and the least CPU nanoseconds of each.

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
    least = dict.fromkeys(WORKLOADS, 1 << 62)
    if options.tool == "viztracer":
        tool.start()
    for _ in range(options.rounds):
        for name, (function, argument, _) in WORKLOADS.items():
            start = time.process_time_ns()
            function(argument)
            least[name] = min(least[name], time.process_time_ns() - start)
    if options.tool == "viztracer":
        tool.stop()
    print(json.dumps({name: {"calls": WORKLOADS[name][2], "ns": ns} for name, ns in least.items()}))


if __name__ == "__main__":
    main()
