"""Programs that do little but call functions, measured from within; `benchmarks/overhead.py` starts them.

python benchmarks/workloads.py [NAME ...] [--tool none|viztracer|viztracer_c|cprofile] [--rounds 5] [--scale 1.0]
                               [--count] [--save FILE]

Prints one JSON object: for each workload the least CPU nanoseconds of the program's own threads ("thread") and of the
whole process ("process": the recorder's background thread, too). `--count` prints calls instead: executions of Python
frames (calls, and resumptions of generators) and of C functions, as `sys.setprofile` reports them. strobe records from
outside: `strobe run`.
"""

import argparse
import heapq
import json
import sys
import threading
import time
from collections import deque


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


# --- sched: tasks with priorities that wake one another ---------------------------------------------------------------


class Task:
    def __init__(self, name, work):
        self.name, self.work, self.runs, self.inbox = name, work, 0, deque()

    def deliver(self, message):
        self.inbox.append(message)

    def step(self, scheduler):
        self.runs += 1
        message = self.inbox.popleft() if self.inbox else self.name
        target = scheduler.choose(message + self.runs)
        target.deliver(self.runs % 7)
        return self.runs < self.work


class Scheduler:
    def __init__(self, tasks):
        self.tasks, self.heap, self.now = tasks, [], 0
        for task in tasks:
            self.push(task)

    def push(self, task):
        heapq.heappush(self.heap, (self.now + task.name % 5, task.name, task))

    def choose(self, number):
        return self.tasks[number % len(self.tasks)]

    def run(self):
        while self.heap:
            self.now, _, task = heapq.heappop(self.heap)
            if task.step(self):
                self.push(task)


def sched(work):
    Scheduler([Task(n, work) for n in range(20)]).run()


# --- raytrace: spheres, with vectors as objects -----------------------------------------------------------------------


class Vector:
    __slots__ = ("x", "y", "z")

    def __init__(self, x, y, z):
        self.x, self.y, self.z = x, y, z

    def __add__(self, other):
        return Vector(self.x + other.x, self.y + other.y, self.z + other.z)

    def __sub__(self, other):
        return Vector(self.x - other.x, self.y - other.y, self.z - other.z)

    def scale(self, factor):
        return Vector(self.x * factor, self.y * factor, self.z * factor)

    def dot(self, other):
        return self.x * other.x + self.y * other.y + self.z * other.z

    def unit(self):
        return self.scale(1 / self.dot(self) ** 0.5)


class Sphere:
    def __init__(self, centre, radius):
        self.centre, self.radius = centre, radius

    def hit(self, origin, ray):
        to = self.centre - origin
        along = to.dot(ray)
        inside = self.radius * self.radius - to.dot(to) + along * along
        return along - inside**0.5 if inside > 0 else None


def shade(spheres, origin, ray):
    hits = [(distance, sphere) for sphere in spheres if (distance := sphere.hit(origin, ray)) is not None]
    if not hits:
        return 0.0
    distance, sphere = min(hits, key=lambda pair: pair[0])
    return max(0.0, (origin + ray.scale(distance) - sphere.centre).unit().dot(Vector(0.0, 1.0, 0.0)))


def raytrace(size):
    spheres = [Sphere(Vector(n - 2.0, 0.5 * n - 1, 6.0 + n), 1.2) for n in range(4)]
    origin, total = Vector(0.0, 0.0, 0.0), 0.0
    for y in range(size):
        for x in range(size):
            total += shade(spheres, origin, Vector(x / size - 0.5, y / size - 0.5, 1.0).unit())
    return total


# --- json: a parser in Python, and a walk over what it gives ----------------------------------------------------------

TEXT = json.dumps(
    [{"id": n, "name": f"item {n}", "tags": ["a", "b", n], "deep": {"x": [n / 3, None]}} for n in range(60)]
)


class Parser:
    def __init__(self, text):
        self.text, self.at = text, 0

    def peek(self):
        while self.text[self.at].isspace():
            self.at += 1
        return self.text[self.at]

    def take(self, expected):
        if self.peek() != expected:
            raise ValueError(expected)
        self.at += 1

    def value(self):
        first = self.peek()
        if first == "{":
            return dict(self.items(self.pair, "{", "}"))
        if first == "[":
            return self.items(self.value, "[", "]")
        return self.string() if first == '"' else self.word()

    def items(self, item, opening, closing):
        found = []
        self.take(opening)
        while self.peek() != closing:
            found.append(item())
            if self.peek() == ",":
                self.take(",")
        self.take(closing)
        return found

    def pair(self):
        name = self.string()
        self.take(":")
        return name, self.value()

    def string(self):
        self.take('"')
        begin, self.at = self.at, self.text.index('"', self.at) + 1
        return self.text[begin : self.at - 1]

    def word(self):
        begin = self.at
        while self.text[self.at] not in ",]} ":
            self.at += 1
        word = self.text[begin : self.at]
        return None if word == "null" else float(word)


def size_of(tree):
    if isinstance(tree, dict):
        return sum(size_of(value) for value in tree.values())
    return sum(map(size_of, tree)) if isinstance(tree, list) else 1


def parse(times):
    return sum(size_of(Parser(TEXT).value()) for _ in range(times))


# --- the others -------------------------------------------------------------------------------------------------------


def numbers(count):
    yield from range(count)


def squares(count):
    for n in numbers(count):
        yield n * n


def gen(count):
    return sum(squares(count))


def advance(bodies, dt):
    for i, a in enumerate(bodies):
        for b in bodies[i + 1 :]:
            dx, dy, dz = a[0] - b[0], a[1] - b[1], a[2] - b[2]
            force = dt / (dx * dx + dy * dy + dz * dz + 0.01) ** 1.5
            a[3] -= dx * force
            a[4] -= dy * force
            a[5] -= dz * force
    for a in bodies:
        a[0] += dt * a[3]
        a[1] += dt * a[4]
        a[2] += dt * a[5]


def nbody(steps):
    bodies = [[float(n), n * 0.5, n * n * 0.1, 0.0, 0.1, 0.0] for n in range(5)]
    for _ in range(steps):
        advance(bodies, 0.01)


def threads(count):
    """Four threads; returns the CPU nanoseconds that they took, because no clock of this thread shows them."""
    took = []

    def work():
        methods(count)
        fib(12)
        took.append(time.thread_time_ns())  # a new thread's clock begins at 0

    workers = [threading.Thread(target=work) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return sum(took)


# Workload: function, argument.
WORKLOADS = {
    "fib": (fib, 22),
    "methods": (methods, 30_000),
    "sched": (sched, 700),
    "raytrace": (raytrace, 24),
    "json": (parse, 8),
    "gen": (gen, 30_000),
    "nbody": (nbody, 2_000),
    "threads": (threads, 10_000),
}


def tool_named(name):
    """Begin and end of a tool that measures from within."""
    if name == "none":
        return (lambda: None), (lambda: None), None
    if name == "cprofile":
        import cProfile

        profile = cProfile.Profile(builtins=False)
        return profile.enable, profile.disable, profile.dump_stats
    from viztracer import VizTracer

    tracer = VizTracer(tracer_entries=10_000_000, verbose=0, ignore_c_function=name == "viztracer")
    return tracer.start, tracer.stop, tracer.save


def scaled(name, scale):
    function, argument = WORKLOADS[name]
    return function, argument if name == "fib" else max(1, int(argument * scale))


def measure(names, rounds, scale):
    """Least CPU nanoseconds of each workload, on both clocks."""
    least = {}
    for _ in range(rounds):
        for name in names:
            function, argument = scaled(name, scale)
            thread, process = time.thread_time_ns(), time.process_time_ns()
            result = function(argument)
            thread, process = time.thread_time_ns() - thread, time.process_time_ns() - process
            if name == "threads":
                thread += result
            before = least.get(name, {"thread": thread, "process": process})
            least[name] = {"thread": min(thread, before["thread"]), "process": min(process, before["process"])}
    return least


def count(names, scale):
    """Calls of each workload: Python frames and C functions."""
    found = {}
    for name in names:
        seen = {"call": 0, "c_call": 0, "return": 0, "c_return": 0, "c_exception": 0}

        def hook(frame, event, argument, seen=seen):
            seen[event] += 1

        function, argument = scaled(name, scale)
        threading.setprofile(hook)
        sys.setprofile(hook)
        function(argument)
        sys.setprofile(None)
        threading.setprofile(None)
        found[name] = {"python": seen["call"], "c": seen["c_call"]}
    return found


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*", default=list(WORKLOADS))
    parser.add_argument("--tool", choices=["none", "viztracer", "viztracer_c", "cprofile"], default="none")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--count", action="store_true")
    parser.add_argument("--save", default="", help="where the tool saves what it has seen; prints the CPU time of that")
    options = parser.parse_args()
    if options.count:
        print(json.dumps(count(options.names, options.scale)))
        return
    begin, end, save = tool_named(options.tool)
    begin()
    least = measure(options.names, options.rounds, options.scale)
    end()
    if options.save and save:
        start = time.process_time_ns()
        save(options.save)
        least["save"] = {"process": time.process_time_ns() - start}
    print(json.dumps(least))


if __name__ == "__main__":
    main()
