"""Reads the catalogues of many museums (XML, some 2500 objects each) into one index of makers, centuries and words.

Two nested loops: the outer one goes from file to file and does nothing but the inner one, which takes objects from
`iterparse` and enters them by `Index.enter`: years out of free text, sizes, words. Healthy: Python is what reading
free text is made of, parsing XML is native and the smaller part. Truth: 48 catalogues of 2200 to 2900 objects; a step
is a catalogue, objects are the inner level; limited by Python.
"""

import random
import re
import tempfile
import time
from collections import Counter, defaultdict
from pathlib import Path
from xml.etree import ElementTree

from truth import tile, write

MUSEUMS = 48
YEARS = re.compile(r"\b(1[0-9]{3})(?:\s*[-/]\s*(\d{2,4}))?")
SIZE = re.compile(r"([\d.]+)\s*x\s*([\d.]+)(?:\s*x\s*([\d.]+))?\s*(mm|cm|m)\b")
WORD = re.compile(r"[a-z]{4,}")
TO_CM = {"mm": 0.1, "cm": 1.0, "m": 100.0}


def make_catalogues(folder):
    rng = random.Random(6)
    things = "vase ewer brooch lantern chest mask panel tile goblet clock fan saddle".split()
    words = "silver gilt carved oak walnut enamel painted glazed with flowers birds leaves lions border dated".split()
    makers = [f"Maker {k}" for k in range(300)]
    objects = 0
    for museum in range(MUSEUMS):
        lines = ["<?xml version='1.0' encoding='utf-8'?>", f"<catalogue museum='M{museum}'>"]
        for number in range(rng.randrange(2200, 2900)):
            year = rng.randrange(1350, 1920)
            date = rng.choice([f"{year}", f"ca. {year}-{(year + 20) % 100:02d}", f"{year} / {year + 35}", "undated"])
            size = f"{rng.randrange(30, 900) / 10} x {rng.randrange(30, 900) / 10} {rng.choice(['cm', 'mm'])}"
            text = " ".join(rng.choices(words, k=rng.randrange(50, 100)))
            lines.append(
                f"<object id='{museum}.{number}'><title>{rng.choice(things).title()}</title>"
                f"<maker>{rng.choice(makers)}</maker><date>{date}</date><size>{size}</size>"
                f"<text>{text}.</text></object>"
            )
            objects += 1
        Path(folder, f"museum{museum:02d}.xml").write_text("\n".join([*lines, "</catalogue>"]))
    return objects


def years(text):
    found = YEARS.search(text)
    if not found:
        return None
    first, last = found.groups()
    if last and len(last) == 2:
        last = first[:2] + last
    return int(first), int(last or first)


def centimetres(text):
    found = SIZE.search(text)
    if not found:
        return None
    *numbers, unit = found.groups()
    return sorted((float(n) * TO_CM[unit] for n in numbers if n), reverse=True)


class Index:
    def __init__(self):
        self.makers, self.centuries = defaultdict(list), defaultdict(Counter)
        self.words, self.largest, self.entered = Counter(), {}, 0

    def enter(self, element):
        self.entered += 1
        title, key = element.findtext("title"), element.get("id")
        self.makers[element.findtext("maker")].append(key)
        span = years(element.findtext("date"))
        if span:
            for century in range(span[0] // 100, span[1] // 100 + 1):
                self.centuries[century][title] += 1
        size = centimetres(element.findtext("size"))
        if size and size[0] > self.largest.get(title, (0, ""))[0]:
            self.largest[title] = size[0], key
        text = element.findtext("text").lower()
        self.words.update(word.rstrip("s") for word in WORD.findall(text))
        element.clear()


def main(folder):
    objects = make_catalogues(folder)
    index = Index()
    cuts = [time.monotonic_ns()]
    for path in sorted(Path(folder).iterdir()):
        for _, element in ElementTree.iterparse(path):
            if element.tag == "object":
                index.enter(element)
        cuts.append(time.monotonic_ns())

    for century, titles in sorted(index.centuries.items()):
        print(f"{century}00s: " + ", ".join(f"{title} {n}" for title, n in titles.most_common(3)))
    print(index.entered, "objects;", *(f"{word} {n}" for word, n in index.words.most_common(4)))
    assert index.entered == objects
    write(tile(cuts, "catalogue"), unit="catalogue", limiting="python", levels={"object": objects})


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        main(place)
