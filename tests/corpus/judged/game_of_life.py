"""Conway's game of life in pure Python on a set of cells: a glider gun, a census every sixteen generations."""

import os
import time
from collections import Counter

GUN = """
........................O...........
......................O.O...........
............OO......OO............OO
...........O...O....OO............OO
OO........O.....O...OO..............
OO........O...O.OO....O.O...........
..........O.....O.......O...........
...........O...O....................
............OO......................
"""


def parse(text):
    return {
        (x, y) for y, line in enumerate(text.strip().splitlines()) for x, letter in enumerate(line) if letter == "O"
    }


def neighbours(cell):
    x, y = cell
    return [(x + dx, y + dy) for dx in (-1, 0, 1) for dy in (-1, 0, 1) if dx or dy]


def survives(cell, count, alive):
    return count == 3 or (count == 2 and cell in alive)


def generation(alive):
    counts = Counter()
    for cell in alive:
        counts.update(neighbours(cell))
    return {cell for cell, count in counts.items() if survives(cell, count, alive)}


def census(alive):
    columns = Counter(x // 8 for x, _ in alive)
    return len(alive), columns.most_common(1)[0]


def main():
    alive, begins = parse(GUN), []
    for number in range(150):
        begins.append(time.monotonic_ns())
        alive = generation(alive)
        if number % 16 == 0:
            print(number, *census(alive))
    with open(os.path.join(os.environ["CORPUS_TRUTH"], str(os.getpid())), "w") as out:
        out.writelines(f"generation {ns}\n" for ns in begins)


if __name__ == "__main__":
    main()
