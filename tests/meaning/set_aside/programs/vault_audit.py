"""Audits the passwords of a company: for each account likely passwords are derived and compared with what is stored.

For each account sixteen guesses are made from its name by rules and derived by PBKDF2 in a pool of two threads
(`hashlib` lets go of the interpreter's lock). Healthy: deriving keys is slow on purpose, that is what PBKDF2 is for,
and it is native. Truth: 90 accounts, each a step, guesses are the inner level; limited by operators. Every 30th
account prints how far it is. `derive` is what the main thread waits for the pool.
"""

import hashlib
import hmac
import random
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from time import monotonic_ns

from truth import tile, write

ROUNDS, GUESSES, ACCOUNTS = 4000, 16, 90
ENDINGS = ["", "1", "123", "!", "2024", "#1", "_x", "99"]


@dataclass
class Account:
    name: str
    salt: bytes
    stored: bytes


@dataclass
class Finding:
    weak: dict = field(default_factory=dict)
    strong: list = field(default_factory=list)


def derive(word, salt):
    return hashlib.pbkdf2_hmac("sha256", word.encode(), salt, ROUNDS)


def guesses(name):
    """From likely to unlikely: the name with the usual endings, then the same with letters made digits."""
    plain = [name.capitalize() + ending for ending in ENDINGS]
    leet = [word.translate(str.maketrans("aeio", "4310")) for word in plain]
    return list(dict.fromkeys(plain + leet))[:GUESSES]


def staff(rng):
    syllables = ["ka", "lo", "mi", "ra", "te", "vo", "ben", "dor", "nel", "sil"]
    accounts = {}
    while len(accounts) < ACCOUNTS:
        name = "".join(rng.choices(syllables, k=3))
        salt = rng.randbytes(16)
        secret = rng.choice(guesses(name)) if rng.random() < 0.2 else rng.randbytes(9).hex()
        accounts[name] = Account(name, salt, derive(secret, salt))
    return accounts


class Auditor:
    def __init__(self, threads=2):
        self.pool = ThreadPoolExecutor(threads, thread_name_prefix="derive")
        self.finding = Finding()
        self.times = {"guess": 0, "derive": 0, "judge": 0}
        self.tried = 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.pool.shutdown()

    def audit(self, account):
        t0 = monotonic_ns()
        words = guesses(account.name)
        t1 = monotonic_ns()
        keys = list(self.pool.map(derive, words, [account.salt] * len(words)))
        t2 = monotonic_ns()
        self.tried += len(words)
        for rank, (word, key) in enumerate(zip(words, keys)):
            if hmac.compare_digest(key, account.stored):
                self.finding.weak[account.name] = (rank, word)
                break
        else:
            self.finding.strong.append(account.name)
        self.times["guess"] += t1 - t0
        self.times["derive"] += t2 - t1
        self.times["judge"] += monotonic_ns() - t2


def main():
    accounts = staff(random.Random(77))
    with Auditor() as auditor:
        cuts = [monotonic_ns()]
        for number, (name, account) in enumerate(accounts.items(), 1):
            auditor.audit(account)
            if number % 30 == 0:
                print(f"{number} accounts, last {name}: {len(auditor.finding.weak)} weak passwords so far")
            cuts.append(monotonic_ns())
    for name, (rank, word) in sorted(auditor.finding.weak.items(), key=lambda item: item[1]):
        print(f"  {name}: {word[:2]}... (guess {rank + 1})")
    write(
        tile(cuts, "account"),
        unit="account",
        limiting="operators",
        levels={"guess": auditor.tried},
        phases_ns=auditor.times,
    )


if __name__ == "__main__":
    main()
