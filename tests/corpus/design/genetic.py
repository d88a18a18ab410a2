"""A genetic algorithm with elitism on Rastrigin's function: 24 individuals, tournaments, mutation; a line every 10."""

import math
import os
import random
import time

rng = random.Random(9)


def fitness(genes):
    return 10 * len(genes) + sum(x * x - 10 * math.cos(2 * math.pi * x) for x in genes)


def tournament(ranked):
    return ranked[min(rng.randrange(len(ranked)) for _ in range(3))][1]


def crossover(a, b):
    cut = rng.randrange(1, len(a))
    return a[:cut] + b[cut:]


def mutate(genes, rate):
    return [x + rng.gauss(0, 0.3) if rng.random() < rate else x for x in genes]


def generation(population, elite):
    ranked = sorted((fitness(genes), genes) for genes in population)
    children = [genes for _, genes in ranked[:elite]]
    while len(children) < len(population):
        children.append(mutate(crossover(tournament(ranked), tournament(ranked)), 0.2))
    return children, ranked[0][0]


population = [[rng.uniform(-5, 5) for _ in range(6)] for _ in range(24)]
begins = []
for number in range(100):
    begins.append(time.monotonic_ns())
    population, best = generation(population, 2)
    if number % 10 == 0:
        print(f"generation {number}: {best:.3f}")

with open(os.path.join(os.environ["CORPUS_TRUTH"], str(os.getpid())), "w") as out:
    out.writelines(f"generation {ns}\n" for ns in begins)
