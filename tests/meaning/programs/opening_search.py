"""Self-play for a small board game: each iteration grows a search tree whose nodes know their parent, then drops it.

A table of known openings stays in memory. Nodes and parents are cycles, so memory grows until the collector runs; the
author switched automatic collection off and calls it every tenth iteration, which walks the table each time as well.
Truth: 200 iterations, limited by garbage collection; iterations 9, 19, ... stand out; the gain is the measured
time of the calls.
"""

import gc
import math
import random
import time

from truth import problem, tile, write


class Position:
    def __init__(self, board, moves):
        self.board, self.moves = board, moves


class Node:
    def __init__(self, parent, move):
        self.parent, self.move = parent, move
        self.children, self.visits, self.value = [], 0, 0.0

    def score(self):
        return self.value / (self.visits + 1) + 1.4 * math.sqrt(math.log(self.parent.visits + 1) / (self.visits + 1))


def openings(rng, size=200_000):
    return {i: Position([rng.randrange(3), rng.randrange(3)], [i % 9, i % 7]) for i in range(size)}


def playout(rng, node):
    total = 0
    while node.parent is not None:
        total, node = total * 3 + node.move, node.parent
    return rng.random() + (total % 11) / 11


def search(rng, visits=700, width=9):
    root = Node(None, -1)
    for _ in range(visits):
        node = root
        while node.children:
            node = max(node.children, key=Node.score)
        node.children = [Node(node, move) for move in range(width)]
        value = playout(rng, node)
        while node is not None:
            node.visits, node.value, node = node.visits + 1, node.value + value, node.parent
    return max(root.children, key=lambda child: child.visits).move


def main():
    rng = random.Random(5)
    gc.disable()
    book = openings(rng)
    chosen, cleaning = [], 0
    cuts = [time.monotonic_ns()]
    for iteration in range(200):
        move = search(rng)
        chosen.append(move if len(book) > iteration else -1)
        if iteration % 10 == 9:
            t = time.monotonic_ns()
            freed = gc.collect()
            cleaning += time.monotonic_ns() - t
            print(f"iteration {iteration}: move {move}, {freed} objects freed")
        cuts.append(time.monotonic_ns())
    write(
        tile(cuts, "iteration"),
        unit="iteration",
        limiting="garbage-collection",
        problem=problem("full collections", "opening_search.py:main", "garbage-collection", wasted_ns=cleaning),
        outliers={i: "the collector is called" for i in range(9, 200, 10)},
    )


main()
