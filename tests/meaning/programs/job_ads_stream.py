"""Sorts job advertisements by pay band as they come in: skills found in the text, then scikit-learn's `partial_fit`.

Planted: `skills_in` calls `re.search` with a pattern made of each of 560 skills, which is more than `re` keeps
compiled, so that every pattern is compiled anew for every advertisement. Truth: 50 batches of 6; limited by Python, the
compiler of `re`; the gain is measured: searching with patterns compiled once, after the loop, on the texts of some
batches.
"""

import itertools
import random
import re
import time
from statistics import median

import numpy as np
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.linear_model import SGDClassifier
from truth import problem, tile, write

BANDS = ("low", "middle", "high")
SYLLABLES = "ja py ru go sql kot lin dat net web ops cad plc erp sap arc gis ton mat lab".split()
FILLER = "we are looking for a motivated person who wants to join our growing team and knows how to work with".split()


def make_skills(count, rng):
    skills = set()
    while len(skills) < count:
        skills.add("".join(rng.sample(SYLLABLES, rng.choice((2, 3)))))
    return sorted(skills)


class Feed:
    """Advertisements, one after the other, for ever; some skills are paid better."""

    def __init__(self, skills, seed):
        self.skills, self.random = skills, random.Random(seed)
        self.worth = {skill: self.random.gauss(0, 1) for skill in skills}

    def __iter__(self):
        while True:
            wanted = self.random.sample(self.skills, self.random.randint(3, 9))
            words = self.random.choices(FILLER, k=150)
            for skill in wanted:
                words.insert(self.random.randrange(len(words)), skill.capitalize())
            worth = sum(self.worth[skill] for skill in wanted) / len(wanted) ** 0.5
            yield " ".join(words), 0 if worth < -0.4 else 1 if worth < 0.4 else 2


def in_batches(stream, size):
    stream = iter(stream)
    while batch := list(itertools.islice(stream, size)):
        yield batch


def skills_in(text, skills):
    return [bool(re.search(rf"\b{re.escape(skill)}\b", text, re.IGNORECASE)) for skill in skills]


class PayBands:
    def __init__(self, skills):
        self.skills = skills
        self.words = HashingVectorizer(n_features=2**9, alternate_sign=False)
        self.model = SGDClassifier(loss="log_loss", alpha=1e-4, random_state=0)
        self.spent = dict.fromkeys(("skills", "words", "score", "fit"), 0)
        self.right = self.seen = 0

    def learn(self, batch):
        texts, bands = zip(*batch, strict=True)
        t0 = time.monotonic_ns()
        skills = np.array([skills_in(text, self.skills) for text in texts], dtype=float)
        t1 = time.monotonic_ns()
        features = np.hstack([skills, self.words.transform(texts).toarray()])
        t2 = time.monotonic_ns()
        if self.seen:
            self.right += int((self.model.predict(features) == bands).sum())
        t3 = time.monotonic_ns()
        self.model.partial_fit(features, bands, classes=range(len(BANDS)))
        self.seen += len(batch)
        for name, span in zip(self.spent, (t1 - t0, t2 - t1, t3 - t2, time.monotonic_ns() - t3), strict=True):
            self.spent[name] += span


def main():
    skills = make_skills(560, random.Random(4))
    bands, sample = PayBands(skills), []
    batches = itertools.islice(in_batches(Feed(skills, seed=4), 6), 50)
    cuts = [time.monotonic_ns()]
    for number, batch in enumerate(batches, start=1):
        bands.learn(batch)
        if number % 10 == 0:
            print(f"{bands.seen} advertisements, {bands.right / bands.seen:.1%} right")
            sample += [text for text, _ in batch]
        cuts.append(time.monotonic_ns())

    compiled = [re.compile(rf"\b{re.escape(skill)}\b", re.IGNORECASE) for skill in skills]
    slow, quick = [], []
    for text in sample:  # in turns, as other programs may run beside this one
        begin = time.monotonic_ns()
        found = [bool(pattern.search(text)) for pattern in compiled]
        quick.append(time.monotonic_ns() - begin)
        assert found == skills_in(text, skills)
        slow.append(time.monotonic_ns() - begin - quick[-1])
    saved = 1 - median(quick) / median(slow)
    write(
        tile(cuts, "batch"),
        unit="batch of advertisements",
        levels={"advertisement": bands.seen},
        limiting="python",
        phases_ns=bands.spent,
        problem=problem(
            "patterns are compiled for every text, as there are more than re keeps",
            "job_ads_stream.py:skills_in",
            "python",
            wasted_ns=int(bands.spent["skills"] * saved),
        ),
    )


if __name__ == "__main__":
    main()
