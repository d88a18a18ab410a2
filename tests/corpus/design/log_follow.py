"""A log is followed: lines come in bursts, are matched against patterns, counted, and every 200th ends in a report."""

import os
import random
import re
import time

PATTERNS = [re.compile(p) for p in (r"user=(\w+)", r"status=(5\d\d)", r"took (\d+)ms")]


def lines(rng, count):
    for number in range(count):
        status = rng.choice((200, 200, 404, 500))
        yield f"{number} user=u{rng.randrange(40)} status={status} took {rng.randrange(900)}ms"


def find(line):
    return [match[1] if (match := pattern.search(line)) else None for pattern in PATTERNS]


def alarm(status, alarms):
    alarms[status] = alarms.get(status, 0) + 1


def count(user, took, table):
    calls, total = table.get(user, (0, 0))
    table[user] = (calls + 1, total + int(took))


def report(table):
    return sorted(table.items(), key=lambda item: -item[1][1])[:3]


def main():
    table, alarms, begins = {}, {}, []
    begins.append(time.monotonic_ns())
    for number, line in enumerate(lines(random.Random(2), 3000), 1):
        user, status, took = find(line)
        if status:
            alarm(status, alarms)
        count(user, took, table)
        if number % 200 == 0:
            print(report(table))
        begins.append(time.monotonic_ns())
    with open(os.path.join(os.environ["CORPUS_TRUTH"], str(os.getpid())), "w") as out:
        out.write("".join(map("line {}\n".format, begins[:-1])))


if __name__ == "__main__":
    main()
