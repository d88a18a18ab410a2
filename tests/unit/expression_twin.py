"""The twin of native/structure/expression.cpp in plain Python: the same rules on lists, without hashes and indices."""

from dataclasses import dataclass, field

TRIED = 12  # earlier occurrences of the last term that are looked at


@dataclass
class Term:
    """An event, or a loop; loops with equal bodies are equal, whatever their trips."""

    shape: object  # an event, or the shapes of the body
    bodies: list[list["Term"]] = field(default_factory=list)  # of a loop: one for each iteration

    @property
    def is_loop(self) -> bool:
        return isinstance(self.shape, tuple)

    def first(self) -> object:
        return self.bodies[0][0].first() if self.is_loop else self.shape


class Folder:
    def __init__(self) -> None:
        self.queue: list[Term] = []

    def shapes(self, begin: int, end: int) -> tuple[object, ...]:
        return tuple(term.shape for term in self.queue[begin:end])

    def push(self, event: int) -> None:
        while self.queue and self.queue[-1].is_loop and self.queue[-1].first() != event and self.fold():
            pass
        self.queue.append(Term(event))
        self.fold()

    def close(self) -> None:
        while self.queue and self.queue[-1].is_loop and self.fold():
            pass

    def fold(self) -> bool:
        return self.goes_on() or self.begins()

    def goes_on(self) -> bool:
        """The tail is one more iteration of the loop before it."""
        end = len(self.queue)
        for at in range(end - 2, -1, -1):
            if self.queue[at].shape == self.shapes(at + 1, end):
                self.queue[at].bodies.append(self.queue[at + 1 :])
                del self.queue[at + 1 :]
                return True
        return False

    def begins(self) -> bool:
        """The tail equals what lies before it."""
        end = len(self.queue)
        same = [at for at in range(end - 2, -1, -1) if self.queue[at].shape == self.queue[-1].shape][:TRIED]
        for at in same:
            length = end - 1 - at
            if 2 * length > end:
                return False
            if self.shapes(end - length, end) == self.shapes(end - 2 * length, end - length):
                loop = Term(
                    self.shapes(end - length, end),
                    [self.queue[end - 2 * length : end - length], self.queue[end - length :]],
                )
                del self.queue[end - 2 * length :]
                self.close()
                self.queue.append(loop)
                return True
        return False


def written(terms: list[list[Term]]) -> str:
    """Terms as text; of a loop, the trip counts of all its executions at this place."""
    words = []
    for column in zip(*terms, strict=True):
        if column[0].is_loop:
            trips = ",".join(str(len(term.bodies)) for term in column)
            words.append(f"({trips})[{written([body for term in column for body in term.bodies])}]")
        else:
            words.append(str(column[0].shape))
    return " ".join(words)


def fold(ids: list[int]) -> str:
    """The expression of a sequence."""
    folder = Folder()
    for event in ids:
        folder.push(event)
    folder.close()
    return written([folder.queue])
