"""Recommends books to readers of a library: factors of readers and books by alternating least squares, in plain
NumPy. Planted: `Loans.of` looks for the loans of a reader (or of a book) by a scan over all loans, for each of them
in each half sweep; sorted once by reader and once by book, they would be slices. Truth: a step is a sweep (readers,
then books), 20 in all; rows that are solved are the inner level. Limited by operators: the scans are NumPy's. The
gain is measured: the same loans out of tables that are sorted once, with the sorting, after the loop.
"""

import time

import numpy as np
from truth import problem, tile, write

READERS, BOOKS, LOANS, RANK, SWEEPS = 620, 480, 140_000, 20, 20


class Loans:
    def __init__(self, dice):
        taste, style = dice.normal(size=(READERS, 4)), dice.normal(size=(BOOKS, 4))
        self.reader = dice.integers(READERS, size=LOANS)
        self.book = (dice.beta(1.0, 2.0, size=LOANS) * BOOKS).astype(np.int64)
        liked = (taste[self.reader] * style[self.book]).sum(1)
        self.weeks = (3 + liked + 0.5 * dice.normal(size=LOANS)).clip(0.2, 12)
        self.looking = 0

    def of(self, column, other, key):
        """The counterparts of one reader or book, and for how long each loan was."""
        begin = time.monotonic_ns()
        (rows,) = np.nonzero(column == key)
        found = other[rows], self.weeks[rows]
        self.looking += time.monotonic_ns() - begin
        return found


class Factors:
    def __init__(self, dice, ridge=2.0):
        self.readers = dice.normal(scale=0.3, size=(READERS, RANK))
        self.books = dice.normal(scale=0.3, size=(BOOKS, RANK))
        self.ridge = ridge * np.eye(RANK)

    def solve(self, target, given, loans, column, other):
        for key in range(len(target)):
            partners, weeks = loans.of(column, other, key)
            if len(partners):
                known = given[partners]
                target[key] = np.linalg.solve(known.T @ known + self.ridge, known.T @ weeks)

    def error(self, loans):
        guess = np.einsum("ij,ij->i", self.readers[loans.reader], self.books[loans.book])
        return float(np.sqrt(np.mean((guess - loans.weeks) ** 2)))


def factorise(loans, factors, spent):
    cuts = [time.monotonic_ns()]
    for sweep in range(SWEEPS):
        factors.solve(factors.readers, factors.books, loans, loans.reader, loans.book)
        t0 = time.monotonic_ns()
        factors.solve(factors.books, factors.readers, loans, loans.book, loans.reader)
        t1 = time.monotonic_ns()
        print(f"sweep {sweep + 1}: error {factors.error(loans):.4f} weeks")
        spent["readers"] += t0 - cuts[-1]
        spent["books"] += t1 - t0
        cuts.append(time.monotonic_ns())
        spent["error"] += cuts[-1] - t1
    return cuts


def from_sorted_tables(loans):
    """How long the same look-ups take in one sweep where loans are sorted once, and the sorting."""
    begin = time.monotonic_ns()
    tables = []
    for column, other, count in ((loans.reader, loans.book, READERS), (loans.book, loans.reader, BOOKS)):
        order = np.argsort(column, kind="stable")
        tables.append((np.searchsorted(column[order], np.arange(count + 1)), other[order], loans.weeks[order]))
    sorted_at = time.monotonic_ns()
    for edges, others, weeks in tables:
        for low, high in zip(edges[:-1], edges[1:], strict=True):
            _ = others[low:high], weeks[low:high]
    return time.monotonic_ns() - sorted_at, sorted_at - begin


def suggest(loans, factors, reader, count=5):
    scores = factors.books @ factors.readers[reader]
    scores[loans.book[loans.reader == reader]] = -np.inf
    return np.argsort(-scores)[:count]


def main():
    dice = np.random.default_rng(12)
    loans = Loans(dice)
    factors = Factors(dice)
    spent = {"readers": 0, "books": 0, "error": 0}
    cuts = factorise(loans, factors, spent)
    looking = loans.looking
    for reader in range(3):
        print(f"reader {reader} may like", *suggest(loans, factors, reader))
    sweep, sorting = from_sorted_tables(loans)
    write(
        tile(cuts, "sweep"),
        unit="sweep of alternating least squares",
        limiting="operators",
        levels={"row solved": SWEEPS * (READERS + BOOKS)},
        phases_ns=spent,
        problem=problem(
            "all loans are scanned for those of each reader and book, in each sweep",
            "library_loans_als.py:Loans.of",
            "operators",
            wasted_ns=looking - SWEEPS * sweep - sorting,
        ),
    )


if __name__ == "__main__":
    main()
