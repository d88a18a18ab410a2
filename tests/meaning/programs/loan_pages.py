"""A library writes reminders: overdue loans are read from SQLite page by page, a letter is written for each.

Planted: `read_page` asks for `LIMIT 250 OFFSET n`, so that SQLite walks over (and joins) all rows of the pages before
each time, and a page takes longer the later it comes. Truth: 220 pages, growing by design; limited by SQLite, native
computation (one may say data or io). The loop goes over a generator, letters are an inner level. The gain is measured:
the same pages, asked for by the last key seen, after the loop.
"""

import random
import sqlite3
from io import StringIO
from time import monotonic_ns

from truth import problem, tile, write

PAGE, LOANS, BORROWERS = 250, 54_900, 6000
TOWNS = ["Aurich", "Emden", "Leer", "Norden", "Weener", "Wittmund"]
SELECT = """
    SELECT loans.due, loans.id, loans.title, borrowers.name, borrowers.town
    FROM loans JOIN borrowers ON borrowers.id = loans.borrower
"""
times = {"query": 0, "letters": 0}


def fill(db):
    rng = random.Random(12)
    db.execute("CREATE TABLE borrowers (id INTEGER PRIMARY KEY, name TEXT, town TEXT)")
    db.execute("CREATE TABLE loans (id INTEGER PRIMARY KEY, borrower INTEGER, title TEXT, due INTEGER)")
    db.executemany(
        "INSERT INTO borrowers VALUES (?, ?, ?)",
        ((n, f"Reader {n:05d}", rng.choice(TOWNS)) for n in range(BORROWERS)),
    )
    db.executemany(
        "INSERT INTO loans VALUES (?, ?, ?, ?)",
        ((n, rng.randrange(BORROWERS), f"Volume {rng.randrange(90_000)}", rng.randrange(700)) for n in range(LOANS)),
    )
    db.execute("CREATE INDEX loans_by_due ON loans (due, id)")
    db.commit()


def read_page(db, number):
    return db.execute(SELECT + "ORDER BY loans.due, loans.id LIMIT ? OFFSET ?", (PAGE, number * PAGE)).fetchall()


def read_after(db, due, key):
    where = "WHERE (loans.due, loans.id) > (?, ?) "
    return db.execute(SELECT + where + "ORDER BY loans.due, loans.id LIMIT ?", (due, key, PAGE)).fetchall()


def pages(db):
    number = 0
    while True:
        t = monotonic_ns()
        rows = read_page(db, number)
        times["query"] += monotonic_ns() - t
        yield rows
        if len(rows) < PAGE:
            return
        number += 1


def letter(due, key, title, name, town, today=700):
    days = today - due
    fee = min(0.2 * days, 25.0)
    text = f"{name}, {town}\nYour loan {key} ({title}) is overdue by {days} days.\nThe fee is {fee:.2f} Euro.\n"
    if days > 365:
        text += "Please regard it as your own now, and pay for it.\n"
    return fee, text


def by_key(db):
    """The same pages, each asked for by the last row of the one before; how long all queries take."""
    t, seen, last = monotonic_ns(), 0, (-1, -1)
    while rows := read_after(db, *last):
        seen += len(rows)
        last = rows[-1][:2]
    assert seen == LOANS
    return monotonic_ns() - t


def remind(db):
    post, fees, cuts = StringIO(), 0.0, [monotonic_ns()]
    for number, rows in enumerate(pages(db), 1):
        t = monotonic_ns()
        for row in rows:
            fee, text = letter(*row)
            fees += fee
            post.write(text)
        times["letters"] += monotonic_ns() - t
        if number % 40 == 0:
            print(f"page {number}: {fees:.2f} Euro so far")
        cuts.append(monotonic_ns())
    return cuts


if __name__ == "__main__":
    with sqlite3.connect(":memory:") as library:
        fill(library)
        cuts = remind(library)
        write(
            tile(cuts, "page"),
            unit="page",
            limiting="operators",
            limiting_also=["data", "io"],
            levels={"letter": LOANS},
            phases_ns=times,
            problem=problem(
                "OFFSET walks over all pages before, each time", "loan_pages.py:read_page", "operators",
                wasted_ns=times["query"] - by_key(library),
            ),
        )  # fmt: skip
