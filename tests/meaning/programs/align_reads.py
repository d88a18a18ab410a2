"""Aligns short DNA reads with a reference by dynamic programming (two rows, affine-free), and prints the best places.

Plain Python without a flaw beyond being Python: healthy. Truth: 560 reads of 80 to 140 bases, each a step.
"""

import random
import time
from collections import Counter

from truth import tile, write

MATCH, MISMATCH, GAP = 2, -1, -2


def best_score(read, window):
    """Smith-Waterman score and the end of the alignment in the window."""
    previous = [0] * (len(window) + 1)
    best, where = 0, 0
    for base in read:
        row = [0]
        left = 0
        for j, other in enumerate(window, 1):
            score = previous[j - 1] + (MATCH if base == other else MISMATCH)
            up = previous[j] + GAP
            if up > score:
                score = up
            left += GAP
            if left > score:
                score = left
            if score < 0:
                score = 0
            left = score
            row.append(score)
            if score > best:
                best, where = score, j
        previous = row
    return best, where


def mutate(piece, rng):
    for base in piece:
        dice = rng.random()
        if dice < 0.03:
            yield rng.choice("ACGT")
        elif dice > 0.015 + 0.97:
            continue
        else:
            yield base


def make_reads(reference, count, rng):
    for _ in range(count):
        start = rng.randrange(len(reference) - 200)
        yield start, "".join(mutate(reference[start : start + rng.randint(80, 140)], rng))


if __name__ == "__main__":
    rng = random.Random(20)
    reference = "".join(rng.choices("ACGT", k=5000))
    reads = list(make_reads(reference, 560, rng))
    buckets = Counter()
    cuts = [time.monotonic_ns()]
    for start, read in reads:
        lower = max(0, start - 20)
        score, end = best_score(read, reference[lower : start + 180])
        buckets[10 * score // (MATCH * len(read))] += 1
        cuts.append(time.monotonic_ns())
    print("identity in tenths:", sorted(buckets.items()))
    write(tile(cuts, "read"), unit="read", limiting="python", levels={"base": sum(len(r) for _, r in reads)})
