"""Sequences of events that random programs make: nested loops, branches, recursion, and jumps into and out of loops."""

import random

from hypothesis import strategies as st


class Program:
    """A program drawn by a random generator. Every run of a part decides anew about trip counts, branches and jumps."""

    def __init__(self, seed: int, kinds: int, most: int) -> None:
        self.random = random.Random(seed)
        self.most = most
        self.events: list[int] = []
        self.body = self.part(3, kinds)
        self.run(self.body, 0)

    def part(self, depth: int, kinds: int) -> list[tuple[str, object]]:
        make = self.random
        parts: list[tuple[str, object]] = []
        for _ in range(make.randint(1, 4)):
            kind = make.choice(["event", "event", "loop", "branch", "jump", "recursion"]) if depth else "event"
            if kind == "event":
                parts.append((kind, make.randrange(kinds)))
            elif kind == "recursion":
                parts.append((kind, None))
            else:
                parts.append((kind, self.part(depth - 1, kinds)))
        return parts

    def run(self, parts: list[tuple[str, object]], calls: int) -> None:
        for kind, inner in parts:
            if len(self.events) >= self.most:
                return
            if kind == "event":
                self.events.append(inner)  # type: ignore[arg-type]
            elif kind == "loop":
                trips = self.random.choice([3, 3, 20, self.random.randrange(9)])
                for _ in range(trips):
                    self.run(inner, calls)  # type: ignore[arg-type]
            elif kind == "branch" and self.random.random() < 0.4:
                self.run(inner, calls)  # type: ignore[arg-type]
            elif kind == "jump":  # into the middle of a loop, and out of it anywhere
                start = self.random.randrange(len(inner))  # type: ignore[arg-type]
                self.run(inner[start:], calls)  # type: ignore[index]
                for _ in range(self.random.randrange(4)):
                    self.run(inner[: self.random.randint(0, len(inner))], calls)  # type: ignore[arg-type, index]
            elif kind == "recursion" and calls < 3:
                self.run(self.body, calls + 1)


def program(seed: int, most: int = 400) -> list[int]:
    """The events of the program with this seed."""
    return Program(seed, kinds=1 + seed % 9, most=most).events


def sequences() -> st.SearchStrategy[list[int]]:
    """Programs, and sequences without any structure."""
    return st.one_of(st.integers(0, 2**32).map(program), st.lists(st.integers(0, 4), max_size=80))
