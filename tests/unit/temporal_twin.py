"""The twin of native/structure/temporal_graph.h in plain Python: partitions of the visits of a node."""

Partition = tuple[int, int, int, int]  # first, last, stride, block


class Order:
    """Which visits took an edge: closed partitions, and an open one that grows."""

    def __init__(self) -> None:
        self.closed: list[Partition] = []
        self.open: tuple[int, int, int, int, int] | None = None  # and where the current block begins

    def add(self, k: int) -> None:
        if self.open is None:
            self.open = (k, k, 0, 1, k)
            return
        first, last, stride, block, begin = self.open
        if stride == 0 and k == last + 1:
            self.open = (first, k, 0, block + 1, begin)
        elif stride == 0:
            self.open = (first, k, k - first, block, k)
        elif (filled := last - begin + 1) < block and k == last + 1:
            self.open = (first, k, stride, block, begin)
        elif filled == block and k == begin + stride:
            self.open = (first, k, stride, block, k)
        elif filled == block:
            self.closed.append((first, last, stride, block))
            self.open = (k, k, 0, 1, k)
        else:
            self.closed.append(full_blocks(first, stride, block, begin))
            self.open = (begin, k, k - begin, filled, k)

    def partitions(self) -> list[Partition]:
        if self.open is None:
            return self.closed
        first, last, stride, block, begin = self.open
        if stride == 0 or last - begin + 1 == block:
            return [*self.closed, (first, last, stride, block)]
        return [*self.closed, full_blocks(first, stride, block, begin), (begin, last, 0, last - begin + 1)]


def full_blocks(first: int, stride: int, block: int, begin: int) -> Partition:
    before = begin - stride
    return (first, before + block - 1, stride if before > first else 0, block)


def visits(partition: Partition) -> list[int]:
    """The visits of a partition."""
    first, last, stride, block = partition
    return [k for k in range(first, last + 1) if stride == 0 or (k - first) % stride < block]
