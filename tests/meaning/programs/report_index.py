"""Indexes reports with three threads that take them from a queue; the main thread merges what they hand back.

Tokenising and counting is Python, so only one of the threads computes at a time, however many cores there are.
Truth: 96 reports, limited by Python under the interpreter's lock. The gain follows from the number of cores: three
processes would share the work among up to three of them. On a single core there is no problem.
"""

import os
import queue
import random
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

from truth import problem, tile, write

SYLLABLES = ["ka", "lo", "mi", "ter", "son", "ba", "ri", "ne", "du", "es"]


def compose(seed, words=22000):
    rng = random.Random(seed)
    return " ".join("".join(rng.choices(SYLLABLES, k=rng.randint(1, 4))) for _ in range(words))


def stem(word):
    for ending in ("sonne", "ri", "es", "ne"):
        if word.endswith(ending) and len(word) > len(ending) + 2:
            word = word[: -len(ending)]
    return word


def index(text):
    counts, before = Counter(), ""
    for word in text.split():
        word = stem(word)
        counts[word] += 1
        counts[before, word] += 1
        before = word
    vowels = sum(sum(letter in "aeiou" for letter in word) for word in counts if isinstance(word, str))
    return len(counts), vowels, counts.most_common(3)


def drain(todo, done):
    while (job := todo.get()) is not None:
        number, text = job
        done.put((number, index(text)))


texts = [compose(seed) for seed in range(8)]
todo, done = queue.Queue(), queue.SimpleQueue()
for number in range(96):
    todo.put((number, texts[number % 8]))
for _ in range(3):
    todo.put(None)
merged = Counter()
with ThreadPoolExecutor(max_workers=3) as threads:
    cuts = [time.monotonic_ns()]
    for _ in range(3):
        threads.submit(drain, todo, done)
    for _ in range(96):
        number, (distinct, vowels, common) = done.get()
        merged.update(dict(common))
        cuts.append(time.monotonic_ns())
print(merged.most_common(2))

share = 1 - 1 / min(3, len(os.sched_getaffinity(0)))
what = "threads take turns with the interpreter"
write(
    tile(cuts, "report"),
    unit="report",
    limiting="python",
    limiting_also=["lock"],
    problem=problem(what, "report_index.py:index", "lock", gain=share) if share else None,
)
