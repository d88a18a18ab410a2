"""Records nests of loops that never ran, at a clock that is put forward instead: what they would be is known.

`python recorder.py FOLDER KEEP SEED ...` writes FOLDER/SEED.strobe and prints a line of JSON: the seed, what kind of
nest it is, and how many steps it has. It runs with passing_time.c preloaded.
"""

from __future__ import annotations

import ctypes
import json
import os
import random
import sys
from collections.abc import Callable
from pathlib import Path

os.environ["STROBE_CLOCK_WITHOUT_TSC"] = "1"  # read when the library is loaded

from strobe.model.kinds import PARADIGMS, ROLES
from strobe.native import library

NS_PER_S = 10**9


class RegionInfo(ctypes.Structure):
    """`strobe_region_info` of native/include/strobe.h."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("file", ctypes.c_char_p),
        ("module", ctypes.c_char_p),
        ("line", ctypes.c_uint32),
        ("paradigm", ctypes.c_uint8),
        ("role", ctypes.c_uint8),
        ("loops", ctypes.c_char_p),
    )


class Options(ctypes.Structure):
    """`strobe_options` of native/include/strobe.h."""

    _fields_ = (
        ("folder", ctypes.c_char_p),
        ("description", ctypes.c_char_p),
        ("ring_bytes", ctypes.c_uint32),
        ("drain_period_us", ctypes.c_uint32),
        ("metrics_period_ms", ctypes.c_uint32),
        ("counters", ctypes.c_char_p),
        ("max_bytes", ctypes.c_uint64),
        ("max_overhead", ctypes.c_double),
        ("keep", ctypes.c_uint32),
        ("throttle_calls", ctypes.c_uint64),
        ("throttle_ns", ctypes.c_uint64),
        ("min_duration_ns", ctypes.c_uint64),
        ("silent", ctypes.c_uint32),
        ("clock_server", ctypes.c_char_p),
        ("flight_ns", ctypes.c_uint64),
        ("flight_bytes", ctypes.c_uint64),
    )


strobe = ctypes.CDLL(library())
put_forward = getattr(ctypes.CDLL(None), "pass")
put_forward.argtypes = [ctypes.c_int64]


class Program:
    """What a program would do: calls that take some time."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.file = f"program{seed}.py"  # the library knows a region by its name and file for as long as it lives
        self.regions: dict[str, int] = {}

    def region(self, name: str, paradigm: str, loops: str) -> int:
        """The number of a region."""
        if name not in self.regions:
            role = ROLES.index("function" if paradigm == "python" else "operator")
            number = PARADIGMS.index(paradigm)
            info = RegionInfo(name.encode(), self.file.encode(), None, 1, number, role, loops.encode())
            self.regions[name] = strobe.strobe_region(ctypes.byref(info))
        return self.regions[name]

    def call(
        self, name: str, ns: float = 0, inside: Callable[[], None] | None = None, loops: str = "", by: str = "python"
    ) -> None:
        """A call that takes about so long beside what is inside of it."""
        region = self.region(name, by, loops)
        strobe.strobe_enter(region)
        put_forward(200)
        if inside is not None:
            inside()
        put_forward(max(1, int(ns * self.random.uniform(0.9, 1.1))))
        strobe.strobe_leave(region)
        put_forward(200)

    def operator(self, name: str, ns: float) -> None:
        """An operator, or a range, of PyTorch."""
        self.call(name, ns, by="torch")


def calls(program: Program) -> int:
    """A loop that calls some functions: perhaps in a loop of its own, perhaps with more at times in front or behind."""
    choose = program.random
    count, names = choose.randint(30, 400), [f"part{k}" for k in range(choose.randint(1, 4))]
    each = choose.uniform(2, 40) * NS_PER_S / count / len(names)
    inner, varies, every = choose.choice((0, 0, 3, 8)), choose.random() < 0.3, choose.choice((0, 0, 10, 25))
    prepared, rebuilt = choose.choice((0, 0, 20)), choose.choice((0, 0, 0, 10))
    # Without the source, what is done every so often may be a loop around: that is known at the end only.
    known = every > 0 or rebuilt > 0 or inner > 3 or choose.random() < 0.5
    points = "range (point) " if inner else ""
    body = f"range ({'rebuild? ' if rebuilt else ''}{points}{' '.join(names)}{' write?' if every else ''})"
    text = ("range (load) " if prepared else "") + body if known else ""

    def main() -> None:
        for _ in range(prepared):
            program.call("load", 2e6)
        for n in range(count):
            if rebuilt and n % rebuilt == 0:
                program.call("rebuild", each)
            for _ in range(choose.randint(1, inner) if varies and inner else inner):
                program.call("point", each / 8)
            for name in names:
                program.call(name, each)
            if every and n % every == every - 1:
                program.call("write", each)

    program.call("main", 1000, main, loops=text)
    return count


def requests(program: Program) -> int:
    """A server: each request is answered in a loop whose length the request decides."""
    choose = program.random
    count = choose.randint(30, 120)
    each = choose.uniform(4, 40) * NS_PER_S / count / 20

    def answer() -> None:
        program.call("prompt", each)
        for _ in range(choose.randint(5, 35)):
            program.call("token", each)

    def main() -> None:
        for _ in range(count):
            program.call("answer", 1000, answer, loops="prompt range (token)")

    program.call("main", 1000, main, loops="(answer)")
    return count


def iterations(program: Program) -> int:
    """A loop that calls nothing but output every so often: its iterations were recorded themselves."""
    choose = program.random
    count, every = choose.randint(40, 600), choose.choice((0, 10, 50))
    each = choose.uniform(2, 40) * NS_PER_S / count
    text = f"range ({'write?' if every else ''})"

    def main() -> None:
        for n in range(count):
            output = (lambda: program.call("write", each / 2)) if every and n % every == every - 1 else None
            program.call("loop in main at program.py:3", each, output, loops=text)

    program.call("main", 1000, main, loops=text)
    return count


def training(program: Program) -> int:
    """A training: with or without a loader, a validation, micro-batches, an adversary."""
    choose = program.random
    epochs, batches, layers = choose.randint(1, 4), choose.randint(10, 60), choose.randint(2, 6)
    loader, validates, zeroed = choose.random() < 0.7, choose.random() < 0.5, choose.choice(("first", "later"))
    micro, optimizers = choose.choice((1, 1, 1, 4)), choose.choice((("SGD",), ("SGD",), ("SGD", "Adam")))
    each = choose.uniform(3, 30) * NS_PER_S / (epochs * batches * micro * len(optimizers))

    def forward() -> None:
        for _ in range(layers):
            program.operator("aten::linear", each / 4 / layers)
            program.operator("aten::relu", each / 20 / layers)

    def load() -> None:
        if loader:
            program.operator("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", each / 5)

    def update(optimizer: str) -> None:
        for part in range(micro):
            if part:
                load()
            if zeroed == "first" and not part:
                program.operator(f"Optimizer.zero_grad#{optimizer}.zero_grad", each / 50)
            program.call("Net.forward", 1000, forward)
            program.operator("aten::mse_loss" if optimizer == "SGD" else "aten::bce", each / 40)
            if zeroed == "later" and not part:
                program.operator(f"Optimizer.zero_grad#{optimizer}.zero_grad", each / 50)
            program.operator("aten::ones_like", each / 100)
            for _ in range(layers):
                program.operator("autograd::engine::evaluate_function: AddmmBackward0", each / 3 / layers)
        program.operator(f"Optimizer.step#{optimizer}.step", each / 10)

    def validate() -> None:
        for _ in range(5):
            load()
            program.call("Net.forward", 1000, forward)

    def main() -> None:
        for _ in range(epochs):
            for _ in range(batches):
                load()
                for optimizer in optimizers:
                    update(optimizer)
            if validates:
                program.call("validate", 1000, validate)

    program.call("main", 1000, main)
    return epochs * batches


def unusual(program: Program) -> int:
    """A loop that does more in some iterations: every so often, by chance, in the first ones, or from some time on."""
    choose = program.random
    count, extras = choose.randint(200, 1000), choose.randint(1, 4)
    each = choose.uniform(10, 40) * NS_PER_S / count

    def drawn() -> tuple[float, bool, Callable[[int], bool]]:
        every, chance, since = choose.choice((2, 3, 10, 25)), choose.choice((0.05, 0.3)), choose.randint(1, count)
        cost, inside = each * choose.choice((0.001, 0.06, 0.5)), choose.random() < 0.5
        return choose.choice(
            [
                (cost, inside, lambda n: n % every == 0),
                (cost, inside, lambda n: n % every == every - 1),
                (cost, inside, lambda _: choose.random() < chance),
                (cost, False, lambda n: n < since),
                (cost, False, lambda n: n >= since),
                (cost, False, lambda n: n < 4),
            ]
        )

    more = [drawn() for _ in range(extras)]

    def main() -> None:
        for n in range(count):
            program.call("advance", each)
            for number, (cost, inside, now) in enumerate(more):
                if now(n):
                    below = (lambda cost=cost: program.call("below", cost)) if inside and n % 3 else None
                    program.call(f"extra{number}", cost, below)

    body = " ".join(f"extra{number}?" for number in range(extras))
    program.call("main", 1000, main, loops=f"range (advance {body})")
    return count


KINDS = (calls, calls, training, training, requests, iterations, unusual)


def record(seed: int, folder: Path, keep: str) -> None:
    """Record the nest of a seed."""
    path = folder / f"{seed}.strobe"
    path.mkdir()
    options = Options(
        folder=str(path).encode(),
        description=b'{"main": "program.py"}',
        ring_bytes=1 << 23,
        metrics_period_ms=0xFFFFFFFF,
        keep=0 if keep == "all" else int(keep),
        silent=1,
    )
    if failed := strobe.strobe_start(ctypes.byref(options)):
        raise OSError(failed, os.strerror(failed))
    program = Program(seed)
    kind = program.random.choice(KINDS)
    count = kind(program)
    strobe.strobe_stop()
    print(json.dumps({"seed": seed, "kind": kind.__name__, "count": count}))


if __name__ == "__main__":
    for each in sys.argv[3:]:
        record(int(each), Path(sys.argv[1]), sys.argv[2])
