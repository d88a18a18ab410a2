"""A forest-fire automaton: grow, ignite, spread; a picture of the forest is kept every fourth generation."""

import os
import time

import numpy as np

EMPTY, TREE, FIRE = 0, 1, 2


def burning_near(forest):
    fire = forest == FIRE
    near = np.zeros_like(fire)
    near[1:] |= fire[:-1]
    near[:-1] |= fire[1:]
    near[:, 1:] |= fire[:, :-1]
    near[:, :-1] |= fire[:, 1:]
    return near


def evolve(forest, grow, lightning, rng):
    chance = rng.random(forest.shape)
    new = forest.copy()
    new[(forest == EMPTY) & (chance < grow)] = TREE
    new[(forest == TREE) & (burning_near(forest) | (chance < lightning))] = FIRE
    new[forest == FIRE] = EMPTY
    return new


def snapshot(forest):
    return np.packbits(forest == TREE).tobytes()


def count(forest):
    return np.bincount(forest.ravel(), minlength=3)


if __name__ == "__main__":
    rng = np.random.default_rng(4)
    forest = (rng.random((80, 80)) < 0.6).astype(int)
    begins, album = [], []
    for generation in range(200):
        begins.append(time.monotonic_ns())
        forest = evolve(forest, 0.02, 0.0005, rng)
        if generation % 4 == 0:
            album.append((snapshot(forest), count(forest)))
    print(len(album), album[-1][1])
    with open(os.path.join(os.environ["CORPUS_TRUTH"], str(os.getpid())), "w") as out:
        out.writelines(f"generation {ns}\n" for ns in begins)
