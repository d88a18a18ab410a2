"""Tags patents with the terms of a glossary: abstracts come as JSON lines, each is searched for each of 620 terms.

The loop is `for patent in map(json.loads, lines)`. Planted: `tag` calls `re.search` with the text of the pattern, and
as there are more terms than the 512 patterns that `re` remembers, every pattern is compiled again for every patent.
Truth: 75 patents, limited by Python (the compiler of `re` is written in it), in `tag`. The gain is the measured time
of `tag` less what the same search with patterns compiled once takes, measured after the loop on the same patents.
"""

import json
import random
import re
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from truth import problem, tile, write

PATENTS, TERMS = 75, 620
tagging = 0


def make_words(rng, number):
    parts = "ba co di fe gu ha jo ki la me nu or pa ro se ti va xe yl zo".split()
    words = set()
    while len(words) < number:
        words.add("".join(rng.choices(parts, k=rng.randrange(2, 5))))
    return sorted(words)


def make_files(folder):
    rng = random.Random(15)
    words = make_words(rng, 2400)
    terms = [" ".join(rng.sample(words, k=rng.choice([1, 1, 2]))) for _ in range(TERMS)]
    Path(folder, "glossary.txt").write_text("\n".join(terms))
    with open(Path(folder, "patents.jsonl"), "w") as out:
        for number in range(PATENTS):
            text = " ".join(rng.choices(words, k=rng.randrange(110, 150)) + rng.sample(terms, k=5))
            record = {"number": f"EP{4000 + number}", "class": rng.choice("ABCDEFGH")}
            record["abstract"] = text.capitalize() + "."
            out.write(json.dumps(record) + "\n")


def pattern(term):
    return r"\b" + re.escape(term).replace(r"\ ", r"[\s-]+") + r"(?:s|es)?\b"


def tag(text, terms):
    found = []
    for term in terms:
        if re.search(pattern(term), text, re.IGNORECASE):
            found.append(term)
    return found


def similarity(a, b):
    return len(a & b) / (len(a | b) or 1)


def main(folder):
    global tagging
    make_files(folder)
    terms = Path(folder, "glossary.txt").read_text().splitlines()
    by_class, seen, texts = {}, {}, []
    lines = open(Path(folder, "patents.jsonl"))
    cuts = [time.monotonic_ns()]
    for patent in map(json.loads, lines):
        texts.append(patent["abstract"])
        t = time.monotonic_ns()
        found = tag(patent["abstract"], terms)
        tagging += time.monotonic_ns() - t
        by_class.setdefault(patent["class"], Counter()).update(found)
        tags = frozenset(found)
        near = max(seen, key=lambda number: similarity(tags, seen[number]), default=None)
        seen[patent["number"]] = tags
        if len(seen) % 15 == 0:
            print(f"{patent['number']}: {len(found)} terms, nearest is {near}", file=sys.stderr)
        cuts.append(time.monotonic_ns())
    lines.close()

    for name, counts in sorted(by_class.items()):
        print(name, *(f"{term} ({n})" for term, n in counts.most_common(3)), sep="  ")
    compiled = [(term, re.compile(pattern(term), re.IGNORECASE)) for term in terms]
    t = time.monotonic_ns()
    for number, text in zip(seen, texts, strict=True):
        assert seen[number] == {term for term, rule in compiled if rule.search(text)}
    quickly = time.monotonic_ns() - t
    write(
        tile(cuts, "patent"),
        unit="patent",
        limiting="python",
        levels={"term": PATENTS * TERMS},
        phases_ns={"tag": tagging},
        problem=problem(
            "more patterns than re's cache holds are compiled again for each patent",
            "patent_terms.py:tag",
            "python",
            wasted_ns=tagging - quickly,
        ),
    )


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        main(place)
