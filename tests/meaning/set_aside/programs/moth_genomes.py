"""Assigns DNA samples of moths to species: a `multiprocessing.Pool` of two compares each sample with a reference.

The reference is a dictionary from short words of DNA to species. Planted: every task carries the whole reference with
it, which is pickled by the parent, sent through a pipe and made anew in the worker, again and again; an initialiser
could hand it over once. Truth: 440 samples, a step is a result that came back from `imap_unordered`; limited by
communication between the processes (pickling is native: one may say operators; the parent only waits:
synchronisation, data). The gain is measured: the same samples go through a pool with an initialiser after the loop.
"""

import random
import time
from collections import Counter
from multiprocessing import get_context

from truth import problem, tile, write

K, SPECIES, SAMPLES = 14, 8, 440
kept = None


def make_reference(rng):
    genomes = ["".join(rng.choices("ACGT", k=3200)) for _ in range(SPECIES)]
    reference = {}
    for species, genome in enumerate(genomes):
        for start in range(len(genome) - K + 1):
            reference.setdefault(genome[start : start + K], species)
    return genomes, reference


def make_samples(genomes, rng):
    for number in range(SAMPLES):
        species = rng.randrange(SPECIES)
        reads = []
        for _ in range(60):
            start = rng.randrange(3000)
            read = list(genomes[species][start : start + 150])
            for place in rng.sample(range(150), 3):
                read[place] = rng.choice("ACGT")
            reads.append("".join(read))
        yield number, species, reads


def votes(reference, reads):
    count = Counter()
    for read in reads:
        for start in range(len(read) - K + 1):
            species = reference.get(read[start : start + K])
            if species is not None:
                count[species] += 1
    return count


def assign(task):
    reference, number, reads = task
    (best, hits), *rest = votes(reference, reads).most_common(2)
    return number, best, hits, rest[0][1] if rest else 0


def keep(reference):
    global kept
    kept = reference


def assign_with_kept(task):
    return assign((kept, *task))


def main():
    rng = random.Random(17)
    genomes, reference = make_reference(rng)
    samples = list(make_samples(genomes, rng))
    truth = {number: species for number, species, _ in samples}
    context = get_context("fork")
    found = {}
    with context.Pool(2) as pool:
        cuts = [time.monotonic_ns()]
        tasks = ((reference, number, reads) for number, _, reads in samples)
        for number, species, hits, second in pool.imap_unordered(assign, tasks):
            found[number] = species, hits - second
            cuts.append(time.monotonic_ns())
    right = sum(found[number][0] == species for number, species in truth.items())
    print(f"{right} of {SAMPLES} right, least margin {min(margin for _, margin in found.values())}")

    with context.Pool(2, initializer=keep, initargs=(reference,)) as pool:
        begin = time.monotonic_ns()
        tasks = ((number, reads) for number, _, reads in samples)
        for number, species, hits, second in pool.imap_unordered(assign_with_kept, tasks):
            assert found[number] == (species, hits - second)
        handed_once = time.monotonic_ns() - begin
    write(
        tile(cuts, "sample"),
        unit="sample",
        limiting="communication",
        limiting_also=["operators", "synchronisation", "data"],
        problem=problem(
            "the whole reference is pickled and sent with every task",
            "moth_genomes.py:main",
            "communication",
            wasted_ns=cuts[-1] - cuts[0] - handed_once,
        ),
    )


if __name__ == "__main__":
    main()
