"""Cross-validated grid search over a scikit-learn pipeline that classifies reviews by hand-made style features.

Truth: 60 fits (12 settings of 5 folds), each with its scoring; the features come from `stylometry`, pure Python, which is
called on the same reviews for every setting and fold and takes most of the time. Computing them once would save 59/60 of it.
"""

import os

os.environ["OPENBLAS_NUM_THREADS"] = "1"
os.environ["OMP_NUM_THREADS"] = "1"

import random
import time

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import ParameterGrid, StratifiedKFold
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from truth import problem, tile, write

spent = 0


def make_reviews(n=320, seed=5):
    rnd = random.Random(seed)
    good = "lovely crisp splendid worth gentle bright".split()
    bad = "broken noisy refund late flimsy awful".split()
    filler = "the box arrived and i have used it for a week with my sister at home , which was fine .".split()
    texts, labels = [], []
    for i in range(n):
        y = i % 2
        words = [rnd.choice((good if y else bad) if rnd.random() < 0.08 else filler) for _ in range(70)]
        texts.append(" ".join(words))
        labels.append(y)
    return np.array(texts, dtype=object), np.array(labels)


def stylometry(texts):
    global spent
    began = time.monotonic_ns()
    table = []
    for text in texts:
        letters = [0] * 26
        bigrams = {}
        vowels = runs = 0
        previous = ""
        for ch in text:
            if "a" <= ch <= "z":
                letters[ord(ch) - 97] += 1
                if ch in "aeiou":
                    vowels += 1
            if ch == previous:
                runs += 1
            pair = previous + ch
            bigrams[pair] = bigrams.get(pair, 0) + 1
            previous = ch
        words = text.split()
        longest = max(len(w) for w in words)
        table.append([c / len(text) for c in letters] + [vowels, runs, len(bigrams), longest, len(set(words))])
    out = np.array(table, dtype=float)
    spent += time.monotonic_ns() - began
    return out


def main():
    texts, labels = make_reviews()
    pipe = Pipeline(
        [
            ("style", FunctionTransformer(stylometry)),
            ("scale", StandardScaler()),
            ("clf", LogisticRegression(max_iter=200)),
        ]
    )
    grid = ParameterGrid({"clf__C": [0.01, 0.1, 1, 10], "clf__tol": [1e-3, 1e-4], "scale__with_mean": [True]})
    grid = list(grid) + list(ParameterGrid({"clf__C": [0.03, 0.3, 3, 30], "scale__with_mean": [False]}))
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    results = []
    cuts = [time.monotonic_ns()]
    for setting in grid:
        scores = []
        for train, test in folds.split(texts, labels):
            pipe.set_params(**setting)
            pipe.fit(texts[train], labels[train])
            scores.append(pipe.score(texts[test], labels[test]))
            cuts.append(time.monotonic_ns())
        results.append((float(np.mean(scores)), setting))
    best = max(results, key=lambda r: r[0])
    print("best", best)
    assert best[0] > 0.6 and len(cuts) == 61
    write(
        tile(cuts, "fit"),
        unit="fit",
        limiting="python",
        levels={"setting": 12},
        phases_ns={"features": spent},
        problem=problem(
            "the same features are computed anew in pure Python for each setting and fold",
            "review_cv.py:stylometry",
            "python",
            wasted_ns=spent * 59 // 60,
        ),
    )


if __name__ == "__main__":
    main()
