"""Forum posts arrive as gzipped JSON lines; an SGDClassifier learns spam from them with partial_fit, and is scored every batch.

Truth: 60 batches, limited by python: tokenising and stemming text. The held-out posts never change, but are vectorised again for every score
(`Monitor.score`); the measured time of that after the first is the gain. Hashing is native: one may say operators.
"""

import gzip
import io
import itertools
import json
import random
import time

from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.linear_model import SGDClassifier
from truth import problem, tile, write

BATCH = 50
SUFFIXES = ("ing", "ed", "s", "0")


def stems(text):
    words = []
    for word in text.split():
        word = "".join(ch for ch in word if ch.isalnum())
        for suffix in SUFFIXES:
            if word.endswith(suffix) and len(word) > 4:
                word = word[: -len(suffix)]
                break
        words.append(word)
    return words


def make_stream(n):
    r = random.Random(12)
    ham = [f"topic{i}" for i in range(600)]
    spam = [f"offer{i}" for i in range(150)] + ham[:300]
    buffer = io.BytesIO()
    with gzip.open(buffer, "wt") as out:
        for _ in range(n):
            label = int(r.random() < 0.3)
            print(json.dumps({"text": " ".join(r.choices(spam if label else ham, k=60)), "spam": label}), file=out)
    buffer.seek(0)
    return buffer


def posts(buffer):
    with gzip.open(buffer, "rt") as lines:
        yield from map(json.loads, lines)


class Monitor:
    def __init__(self, vectorizer, held_out):
        self.vectorizer = vectorizer
        self.texts = [post["text"] for post in held_out]
        self.labels = [post["spam"] for post in held_out]
        self.vectorising = []

    def score(self, classifier):
        begin = time.monotonic_ns()
        features = self.vectorizer.transform(self.texts)
        self.vectorising.append(time.monotonic_ns() - begin)
        return classifier.score(features, self.labels)


stream = posts(make_stream(60 * BATCH + 200))
vectorizer = HashingVectorizer(n_features=2**14, tokenizer=stems, token_pattern=None, ngram_range=(1, 2), alternate_sign=False)
monitor = Monitor(vectorizer, list(itertools.islice(stream, 200)))
classifier = SGDClassifier(loss="log_loss", random_state=0)
phases = {"read": 0, "vectorise": 0, "fit": 0, "score": 0}
scores = []
cuts = [time.monotonic_ns()]
while batch := list(itertools.islice(stream, BATCH)):
    a = time.monotonic_ns()
    features = vectorizer.transform(post["text"] for post in batch)
    b = time.monotonic_ns()
    classifier.partial_fit(features, [post["spam"] for post in batch], classes=[0, 1])
    c = time.monotonic_ns()
    scores.append(monitor.score(classifier))
    d = time.monotonic_ns()
    phases["read"] += a - cuts[-1]
    phases["vectorise"] += b - a
    phases["fit"] += c - b
    phases["score"] += d - c
    cuts.append(d)
print(f"{len(scores)} batches, accuracy {scores[0]:.2f} -> {scores[-1]:.2f}")

write(
    tile(cuts, "batch"),
    unit="batch",
    limiting="python",
    limiting_also=["operators"],
    phases_ns=phases,
    problem=problem(
        "the held-out posts are vectorised again for every score",
        "forum_spam_stream.py:Monitor.score",
        "python",
        wasted_ns=sum(monitor.vectorising[1:]),
    ),
)
