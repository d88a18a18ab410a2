"""A tournament of Kalah players, which look a few moves ahead by a recursive alpha-beta search in plain Python.

Every pair of players meets with every opening; a step is a game, its moves are an inner level. Planted: the search
makes each move on a `copy.deepcopy` of the board, which is several times slower than the move itself; copying
fourteen numbers would do. Truth: 90 games (as long as they take, by their moves), limited by Python. The gain is the
measured time of `Board.after` copying, less that of a plain copy, measured after the tournament on one board.
"""

import copy
import time
from dataclasses import dataclass, field
from itertools import permutations, product

from truth import problem, tile, write

STORES = (6, 13)
copying = copies = 0


@dataclass
class Board:
    pits: list = field(default_factory=lambda: [4] * 6 + [0] + [4] * 6 + [0])
    turn: int = 0

    def moves(self):
        first = 7 * self.turn
        return [pit for pit in range(first + 5, first - 1, -1) if self.pits[pit]]

    def play(self, pit):
        pits, mine, theirs = self.pits, STORES[self.turn], STORES[1 - self.turn]
        seeds, pits[pit] = pits[pit], 0
        while seeds:
            pit = (pit + 1) % 14
            if pit != theirs:
                pits[pit] += 1
                seeds -= 1
        if pits[pit] == 1 and pit // 7 == self.turn and pit != mine and pits[12 - pit]:
            pits[mine] += 1 + pits[12 - pit]
            pits[pit] = pits[12 - pit] = 0
        if pit != mine:
            self.turn = 1 - self.turn

    def after(self, pit):
        global copying, copies
        t = time.monotonic_ns()
        board = copy.deepcopy(self)
        copying += time.monotonic_ns() - t
        copies += 1
        board.play(pit)
        return board

    def over(self):
        return not any(self.pits[:6]) or not any(self.pits[7:13])

    def margin(self):
        """Of the first player, with seeds that are left counted for their side."""
        return sum(self.pits[:7]) - sum(self.pits[7:])


@dataclass(frozen=True)
class Player:
    name: str
    depth: int
    greed: float = 0.0

    def value(self, board):
        stores = board.pits[6] - board.pits[13]
        near = board.pits[5] + board.pits[4] - board.pits[12] - board.pits[11]
        return stores + self.greed * near

    def search(self, board, depth, low, high):
        if board.over():
            return 2.0 * board.margin()
        if depth == 0:
            return self.value(board)
        for pit in board.moves():
            found = self.search(board.after(pit), depth - 1, low, high)
            if board.turn == 0:
                low = max(low, found)
            else:
                high = min(high, found)
            if low >= high:
                break
        return low if board.turn == 0 else high

    def choose(self, board):
        sign = 1 - 2 * board.turn
        return max(board.moves(), key=lambda pit: sign * self.search(board.after(pit), self.depth, -99.0, 99.0))


def game(players, opening):
    board, moves = Board(), 0
    for pit in opening:
        board.play(pit)
    while not board.over():
        board.play(players[board.turn].choose(board))
        moves += 1
    return board.margin(), moves


def main():
    players = [Player("cautious", 2), Player("greedy", 2, 0.4), Player("deep", 3)]
    openings = [(2,), (2, 5), (0, 7), (1, 9), (3, 12), (4, 8), (5, 10), (1, 7), (3, 9)]
    openings += [(0, 11), (2, 7), (4,), (5,), (1, 12), (3, 10)]
    score, moves = dict.fromkeys((p.name for p in players), 0.0), 0
    cuts = [time.monotonic_ns()]
    for number, (opening, (first, second)) in enumerate(product(openings, permutations(players, 2))):
        margin, length = game((first, second), opening)
        moves += length
        score[first.name] += 0.5 + 0.5 * ((margin > 0) - (margin < 0))
        score[second.name] += 0.5 - 0.5 * ((margin > 0) - (margin < 0))
        if number % 30 == 29:
            print("  ".join(f"{name} {points}" for name, points in sorted(score.items(), key=lambda s: -s[1])))
        cuts.append(time.monotonic_ns())

    board = Board()
    t = time.monotonic_ns()
    for _ in range(20000):
        Board(board.pits[:], board.turn)
    plain = (time.monotonic_ns() - t) * copies // 20000
    write(
        tile(cuts, "game"),
        unit="game",
        limiting="python",
        levels={"move": moves},
        problem=problem(
            "the board is copied by copy.deepcopy for each move that is tried",
            "mancala_tournament.py:Board.after",
            "python",
            wasted_ns=copying - plain,
        ),
    )


if __name__ == "__main__":
    main()
