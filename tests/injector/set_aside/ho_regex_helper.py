"""Term matching, for ho_regex.py."""
import random
import re


def make_words(count):
    pick = random.Random(1)
    return sorted({"".join(pick.choice("abcdefghik") for _ in range(6)) for _ in range(count + 20)})[:count]


class Matcher:
    def __init__(self, words, keep):
        self.words = words
        self.compiled = [self.pattern(word) for word in words] if keep else None

    def pattern(self, word):
        return re.compile(rf"\b{word}(?:s|ed)?\b")  # DEFECT

    def count(self, text):
        found = 0
        for number, word in enumerate(self.words):
            pattern = self.compiled[number] if self.compiled else self.pattern(word)
            found += sum(1 for _ in pattern.finditer(text))
        return found
