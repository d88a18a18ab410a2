"""Which Python and C calls a recording holds: as many as `sys.setprofile` counts; filters; throttling; greenlets."""

import json
from pathlib import Path

import pytest

import strobe
from strobe.record.options.filters import FILE, REGION, read_filter_file
from tests.record.workshop import Outcome, Workshop, quality_of, spans_of

pytestmark = pytest.mark.every_python

# Everything that enters and leaves a frame in a way of its own.
PROGRAM = """
import asyncio, json, math, sys, threading

def leaf(n):
    return abs(n)

def thrower(n):
    if n == 0:
        raise ValueError(n)
    thrower(n - 1)

def catcher():
    for _ in range(5):
        try:
            thrower(3)
        except ValueError:
            leaf(1)

def numbers(n):
    try:
        for i in range(n):
            yield leaf(i)
    except KeyError:
        yield -1

def delegating(n):
    yield from numbers(n)

def generators():
    sum(delegating(4))
    thrown = numbers(3)
    next(thrown)
    thrown.throw(KeyError)
    closed = delegating(9)
    next(closed)
    closed.close()

async def part(n):
    await asyncio.sleep(0)
    leaf(n)

async def whole():
    await asyncio.gather(*(part(n) for n in range(3)))
    async for n in ticks():
        leaf(n)

async def ticks():
    for n in range(2):
        await asyncio.sleep(0)
        yield n

def deep(n):
    return n if n == 0 else deep(n - 1)

def in_thread():
    for n in range(10):
        leaf(n)
    sorted([3, 1, 2], key=leaf)

def made():
    exec("def from_text(n): return leaf(n)", globals())
    from_text(1)

def keep(found):
    len(found)
    return found

def through_a_library():
    json.loads('{"a": {"b": 1}}', object_hook=keep)
    abs(-1)

class Point:
    def __init__(self, x):
        self.x = x
    @property
    def far(self):
        return math.sqrt(self.x)

def main():
    catcher()
    generators()
    asyncio.run(whole())
    deep(700)
    thread = threading.Thread(target=in_thread)
    thread.start()
    thread.join()
    made()
    through_a_library()
    Point(4).far
    list(map(leaf, [1, 2]))
"""
# Counts what is called where, as the interpreter itself tells it.
COUNTED = """
import collections, json
counted, c_counted = collections.Counter(), collections.Counter()
def hook(frame, event, argument):
    if frame.f_globals is globals() and frame.f_code.co_name not in ("hook", "<module>"):
        if event == "call":
            counted[frame.f_code.co_qualname] += 1
        elif event == "c_call":
            c_counted[argument.__name__] += 1
threading.setprofile(hook)
sys.setprofile(hook)
main()
sys.setprofile(None)
print(json.dumps([counted, c_counted]))
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Workshop:
    return Workshop(tmp_path_factory.mktemp("calls"))


@pytest.fixture(scope="module")
def truth(place: Workshop) -> list[dict[str, int]]:
    place.write("counted.py", PROGRAM + COUNTED)
    counted: list[dict[str, int]] = json.loads(place.plain("counted.py").stdout)
    return counted


@pytest.fixture(scope="module")
def recorded(place: Workshop) -> Outcome:
    place.write("program.py", PROGRAM + "main()\n")
    return place.recorded("--trace", "python,c_calls", "program.py")


def calls_by_name(trace: Path, of_c: bool) -> dict[str, int]:
    rows = strobe.open(trace).sql(
        f"""select regions.name as name, count(*)::bigint as n from spans join regions on spans.region = regions.region
            where (regions.line = 0) = {of_c} and regions.paradigm = 'python' group by all"""
    )
    return {str(row["name"]): int(row["n"]) for row in rows.to_pylist()}


def test_every_python_call_is_recorded_as_often_as_it_happens(truth: list[dict[str, int]], recorded: Outcome) -> None:
    assert recorded.visible == ("", "", 0)
    found = calls_by_name(recorded.trace, of_c=False)
    # The script's and the one of exec; and the body of a class, which runs before main.
    assert (found.pop("<module>"), found.pop("Point")) == (2, 1)
    assert found == truth[0]


def test_every_c_call_of_them_is_recorded(truth: list[dict[str, int]], recorded: Outcome) -> None:
    found = calls_by_name(recorded.trace, of_c=True)
    by_last_name: dict[str, int] = {}
    for name, n in found.items():
        by_last_name[name.rpartition(".")[2]] = by_last_name.get(name.rpartition(".")[2], 0) + n
    # What the module itself calls, outside of main, and classes that it builds are not in the truth.
    for name in ("__build_class__",):
        by_last_name.pop(name, None)
    assert by_last_name == truth[1]
    assert {"math.sqrt", "abs", "generator.throw"} <= set(found)


def test_begins_and_ends_match_however_frames_are_left(recorded: Outcome) -> None:
    assert quality_of(recorded.trace, "leaves_unmatched") == 0
    assert quality_of(recorded.trace, "spans_cut") == 0


GREENLETS = """
import greenlet, sys
log = []
def ping(n):
    for _ in range(n):
        step()
        other.switch()
def pong():
    while True:
        step()
        main.switch()
def step():
    log.append(greenlet.getcurrent() is main)
def guest(event, pair):
    log.append(event)
before = greenlet.settrace(guest)
main, other = greenlet.getcurrent(), greenlet.greenlet(pong)
ping(5)
print(before, greenlet.gettrace() is guest, log)
"""


def test_greenlets_end_and_begin_spans_where_they_switch(workshop: Workshop) -> None:
    workshop.write("program.py", GREENLETS)
    outcome = workshop.recorded("--trace", "python,c_calls", "program.py")
    assert outcome.visible == workshop.plain("program.py").visible
    # Five switches away from ping and back cut it into six pieces, pong into five; it never returns.
    assert {name: spans_of(outcome.trace, name) for name in ("ping", "pong", "step")} == {
        "ping": 6,
        "pong": 5,
        "step": 10,
    }
    assert quality_of(outcome.trace, "leaves_unmatched") == quality_of(outcome.trace, "spans_cut") == 0


HOT = """
def hot(n):
    return n
def cold(n):
    hot(n)
    return sum(range(20_000))
def recursive(n):
    return n if n == 0 else recursive(n - 1)
for n in range(60):
    cold(n)
    for m in range(4_000):
        hot(m)
    for _ in range(30):
        recursive(100)
print(hot(1), recursive(3))
"""


def test_hot_short_functions_are_throttled_and_the_trace_says_after_how_many_calls(workshop: Workshop) -> None:
    workshop.write("program.py", HOT)
    outcome = workshop.recorded("--throttle", "1000:50us", "program.py")
    assert outcome.visible == ("1 0\n", "", 0)
    kept = spans_of(outcome.trace, "hot")
    assert 1000 <= kept < 240_000
    assert quality_of(outcome.trace, "throttled_after: hot (program.py:2)") == kept
    kept = spans_of(outcome.trace, "recursive")
    assert 1000 <= kept < 60 * 30 * 101
    assert quality_of(outcome.trace, "throttled_after: recursive (program.py:7)") == kept
    assert quality_of(outcome.trace, "functions_throttled") == 2
    assert spans_of(outcome.trace, "cold") == 60
    assert quality_of(outcome.trace, "leaves_unmatched") == quality_of(outcome.trace, "spans_cut") == 0
    words = [str(row["text"]) for row in strobe.open(outcome.trace).quality.to_pylist()]
    assert any(word.startswith("hot (program.py:2) throttled after") for word in words)


def test_throttling_can_be_switched_off(workshop: Workshop) -> None:
    workshop.write("program.py", "def hot(n): return n\nfor n in range(120_000): hot(n)")
    workshop.recorded("--throttle", "off", "program.py")
    assert spans_of(workshop.trace, "hot") == 120_000


FILTERED = """
import package.inner, package.outer, json
class Thing:
    def used(self): return helper()
    def other(self): return package.inner.deep()
def helper(): return 1
def main():
    thing = Thing()
    thing.used(), thing.other(), package.outer.wide(), json.dumps([1])
main()
"""
FILTER = r"""
# Functions of files come first.
SCOREP_FILE_NAMES_BEGIN   # a comment
  EXCLUDE */package/*
  INCLUDE */package/outer.py
SCOREP_FILE_NAMES_END
SCOREP_REGION_NAMES_BEGIN
  EXCLUDE *
  INCLUDE MANGLED main Thing.* __main__:helpe?
          deep
  INCLUDE wide
  EXCLUDE *.oth[eE]r
SCOREP_REGION_NAMES_END
"""
FILTERS = {
    "nothing": ([], {"used", "other", "helper", "main", "deep", "wide"}),
    "a module": (["--exclude", "package.inner"], {"used", "other", "helper", "main", "wide"}),
    "a package but for one module": (
        ["--exclude", "package", "--include", "package.outer"],
        {"used", "other", "helper", "main"},
    ),
    "a name anywhere": (["--exclude", "*.Thing.*"], {"helper", "main", "deep", "wide"}),
    "the script by its file": (["--exclude", "program.Thing"], {"helper", "main", "deep", "wide"}),
    "a folder": (["--exclude", "./package"], {"used", "other", "helper", "main"}),
    "files by a pattern": (["--exclude", "*/inn??.py"], {"used", "other", "helper", "main", "wide"}),
    "a library": (["--include", "json.encoder", "--exclude", "__main__"], {"deep", "wide", "encode", "iterencode"}),
    "Score-P": (["--filter", "filter.txt"], {"used", "helper", "main", "wide"}),
}


@pytest.mark.parametrize("case", FILTERS)
def test_filters_choose_functions(workshop: Workshop, case: str) -> None:
    options, expected = FILTERS[case]
    workshop.write("package/__init__.py", "")
    workshop.write("package/inner.py", "def deep(): return 1\n")
    workshop.write("package/outer.py", "def wide(): return 1\n")
    workshop.write("filter.txt", FILTER)
    workshop.write("program.py", FILTERED)
    assert workshop.recorded(*options, "program.py").returncode == 0
    names = {name.rpartition(".")[2] for name in calls_by_name(workshop.trace, of_c=False)}
    # Bodies of modules and classes run before main.
    assert names - {"<module>", "__init__", "Thing"} == expected


def test_score_p_filter_files_are_read_as_score_p_reads_them(tmp_path: Path) -> None:
    path = tmp_path / "filter"
    path.write_text(
        "SCOREP_REGION_NAMES_BEGIN EXCLUDE a* b\\ c\nINCLUDE MANGLED d # e\nSCOREP_REGION_NAMES_END\n"
        "SCOREP_FILE_NAMES_BEGIN EXCLUDE *.f SCOREP_FILE_NAMES_END"
    )
    assert read_filter_file(str(path)) == [
        (REGION, False, "a*"),
        (REGION, False, "b c"),
        (REGION, True, "d"),
        (FILE, False, "*.f"),
    ]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("INCLUDE a", "line 1: 'INCLUDE' begins no block"),
        ("\nSCOREP_FILE_NAMES_BEGIN\n a\nSCOREP_FILE_NAMES_END", "line 3: 'a' stands before any INCLUDE or EXCLUDE"),
        ("SCOREP_FILE_NAMES_BEGIN INCLUDE a", "has no SCOREP_FILE_NAMES_END"),
    ],
)
def test_a_filter_that_is_none_is_told_with_its_line(workshop: Workshop, text: str, words: str) -> None:
    workshop.write("filter.txt", text)
    workshop.write("program.py", "print(1)")
    outcome = workshop.recorded("--filter", "filter.txt", "program.py")
    assert (outcome.stdout, outcome.returncode) == ("", 2)
    assert words in outcome.stderr


def test_a_second_recording_in_the_same_process_decides_anew(workshop: Workshop) -> None:
    workshop.write(
        "program.py",
        """
        import strobe
        def one(): return 1
        def two(): return 2
        with strobe.record("a.strobe", exclude="*.one"):
            one(), two()
        with strobe.record("b.strobe", exclude="*.two"):
            one(), two()
        """,
    )
    assert workshop.plain("program.py").returncode == 0
    found = [spans_of(workshop.folder / name, which) for name in ("a.strobe", "b.strobe") for which in ("one", "two")]
    assert found == [0, 1, 1, 0]


def test_a_thread_that_never_ends_does_not_hold_the_program(workshop: Workshop) -> None:
    workshop.write(
        "program.py",
        """
        import threading, time
        started = threading.Event()
        def forever():
            started.set()
            while True:
                tick()
        def tick():
            time.sleep(0.001)
        threading.Thread(target=forever, daemon=True).start()
        started.wait()
        print("main ends")
        """,
    )
    assert workshop.recorded("program.py").visible == ("main ends\n", "", 0)
    assert spans_of(workshop.trace, "forever") == 1
