"""Who is answered when: lanes, shared work, and work that nobody waits for any more."""

from __future__ import annotations

import asyncio
import gc
import threading
import weakref
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, TypeVar

import pytest

from strobe.model.cancellation import Cancellation, CancelledWorkError, checkpoint, piece, pieces
from strobe.server.http.work_queue import BusyError, LateError, Limits, WithdrawnError, WorkQueue
from strobe.server.recent import Recent

pytestmark = pytest.mark.every_python

Result = TypeVar("Result")
# Nobody waits that long: it only keeps a broken test from hanging.
FOREVER_S = 60


class Work:
    """Work that begins when a thread has time for it, and ends when the test says so, or at a checkpoint."""

    def __init__(self, *, checking: bool = True) -> None:
        self.begun, self.may_end, self.ended = threading.Event(), threading.Event(), threading.Event()
        self.times, self._checking = 0, checking

    def __call__(self) -> str:
        self.times += 1
        self.begun.set()
        try:
            while not self.may_end.wait(0.001):
                if self._checking:
                    checkpoint()
            return "answer"
        finally:
            self.ended.set()


async def never() -> None:
    await asyncio.Event().wait()


async def until(true: Callable[[], bool]) -> None:
    async with asyncio.timeout(FOREVER_S):
        while not true():
            await asyncio.sleep(0.001)


def run(queue: WorkQueue, work: Coroutine[Any, Any, Result]) -> Result:
    # In a thread of its own: once a test has driven a browser, Playwright's loop runs in this one until the end.
    try:
        with ThreadPoolExecutor(1) as thread:
            return thread.submit(asyncio.run, work).result()
    finally:
        queue.close()


def test_a_picture_does_not_wait_for_analyses() -> None:
    queue = WorkQueue(Limits(slow=1))

    async def scene() -> str:
        analyses = [Work(), Work()]
        asked = [asyncio.create_task(queue.answer(i, each, slow=True, gone=never)) for i, each in enumerate(analyses)]
        await until(analyses[0].begun.is_set)
        picture = await queue.answer("picture", lambda: "picture", slow=False, gone=never)
        assert not analyses[1].begun.is_set(), "the second waits for the first"
        for each in analyses:
            each.may_end.set()
        assert await asyncio.gather(*asked) == ["answer", "answer"]
        return picture

    assert run(queue, scene()) == "picture"


def test_the_same_question_is_worked_on_once() -> None:
    queue, work = WorkQueue(), Work()

    async def scene() -> list[str]:
        asked = [asyncio.create_task(queue.answer("same", work, slow=True, gone=never)) for _ in range(10)]
        await until(work.begun.is_set)
        work.may_end.set()
        return await asyncio.gather(*asked)

    assert run(queue, scene()) == ["answer"] * 10
    assert work.times == 1


def test_a_failure_is_told_to_all_who_asked_and_not_kept() -> None:
    queue = WorkQueue()

    async def scene() -> None:
        def fail() -> str:
            raise ValueError("no")

        for _ in range(2):
            asked = [queue.answer("same", fail, slow=True, gone=never) for _ in range(3)]
            results = await asyncio.gather(*asked, return_exceptions=True)
            assert [str(each) for each in results] == ["no"] * 3
        assert await queue.answer("same", lambda: "yes", slow=True, gone=never) == "yes"

    run(queue, scene())


class Large:
    """What a server must not keep: a run that was opened anew, for instance."""


@pytest.mark.parametrize("fails", [False, True])
def test_what_was_answered_is_freed_without_the_garbage_collector(fails: bool) -> None:
    queue, alive = WorkQueue(), list[weakref.ref[Large]]()

    def make(large: Large) -> Large:
        if fails:
            raise ValueError("no")
        return large

    async def ask() -> None:
        large = Large()
        alive.append(weakref.ref(large))
        try:
            await queue.answer("same", partial(make, large), slow=True, gone=never)
        except ValueError:
            assert fails

    async def scene() -> None:
        for _ in range(3):
            await ask()
        await queue.answer("another", lambda: None, slow=True, gone=never)  # threads hold the last work until the next
        await until(lambda: not any(each() for each in alive))

    gc.collect()
    gc.disable()
    try:
        run(queue, scene())
    finally:
        gc.enable()


async def order_of(queue: WorkQueue, questions: list[tuple[str, int]]) -> list[str]:
    """The order in which questions of so many rows are worked on that arrive one after the other while another runs."""
    running, order = Work(), list[str]()
    first = asyncio.create_task(queue.answer("running", running, slow=False, gone=never))
    await until(running.begun.is_set)
    asked = []
    for at, (name, rows) in enumerate(questions):
        work = partial(order.append, name)
        asked.append(asyncio.create_task(queue.answer(at, work, slow=False, gone=never, rows=rows)))
        await until(lambda: queue.unfinished == len(asked) + 1)
    running.may_end.set()
    await asyncio.gather(first, *asked)
    return order


def test_small_questions_overtake_large_ones_and_each_other_never() -> None:
    questions = [("large 1", 512), ("small 1", 1), ("large 2", 512), ("small 2", 1), ("small 3", 1)]
    queue = WorkQueue(Limits(quick=1))
    assert run(queue, order_of(queue, questions)) == ["small 1", "small 2", "small 3", "large 1", "large 2"]


def test_large_questions_are_overtaken_only_so_often() -> None:
    queue = WorkQueue(Limits(quick=1))
    order = run(queue, order_of(queue, [("large", 512), *[("small", 1)] * 200]))
    assert 10 < order.index("large") < 100


def test_what_has_no_turn_yet_when_the_server_ends_is_withdrawn() -> None:
    queue, running = WorkQueue(Limits(quick=1)), Work()

    async def scene() -> list[str | BaseException]:
        asked = [asyncio.create_task(queue.answer(at, running, slow=False, gone=never)) for at in range(3)]
        await until(running.begun.is_set)
        await until(lambda: queue.unfinished == 3)
        queue.close()
        return await asyncio.gather(*asked, return_exceptions=True)

    assert [type(each) for each in run(queue, scene())] == [LateError, WithdrawnError, WithdrawnError]
    assert running.times == 1


def test_who_leaves_leaves_no_work_behind() -> None:
    """One asker leaves while the work is under way, another while it waits: the first ends, the second never begins."""
    queue, running, waiting = WorkQueue(Limits(slow=1)), Work(), Work()

    async def scene() -> None:
        leaving = asyncio.Event()
        first = asyncio.create_task(queue.answer(1, running, slow=True, gone=leaving.wait))
        second = asyncio.create_task(queue.answer(2, waiting, slow=True, gone=leaving.wait))
        await until(running.begun.is_set)
        assert queue.unfinished == 2
        leaving.set()
        results = await asyncio.gather(first, second, return_exceptions=True)
        assert [type(each) for each in results] == [WithdrawnError, WithdrawnError]
        await until(lambda: queue.unfinished == 0)
        assert running.ended.is_set()
        assert not waiting.begun.is_set()

    run(queue, scene())


def test_a_cancelled_request_leaves_no_work_behind_either() -> None:
    queue, work = WorkQueue(), Work()

    async def scene() -> None:
        asked = asyncio.create_task(queue.answer(1, work, slow=True, gone=never))
        await until(work.begun.is_set)
        asked.cancel()
        await until(lambda: queue.unfinished == 0)

    run(queue, scene())
    assert work.ended.is_set()


def test_work_goes_on_while_one_of_its_askers_waits() -> None:
    queue, work = WorkQueue(), Work()

    async def scene() -> str:
        leaving = asyncio.Event()
        leaver = asyncio.create_task(queue.answer("same", work, slow=True, gone=leaving.wait))
        stayer = asyncio.create_task(queue.answer("same", work, slow=True, gone=never))
        await until(work.begun.is_set)
        leaving.set()
        with pytest.raises(WithdrawnError):
            await leaver
        work.may_end.set()
        return await stayer

    assert run(queue, scene()) == "answer"


def test_who_asks_anew_does_not_get_work_that_was_cancelled() -> None:
    queue, stubborn = WorkQueue(), Work(checking=False)

    async def scene() -> str:
        leaving = asyncio.Event()
        leaver = asyncio.create_task(queue.answer("same", stubborn, slow=True, gone=leaving.wait))
        await until(stubborn.begun.is_set)
        leaving.set()
        with pytest.raises(WithdrawnError):
            await leaver
        again = await queue.answer("same", lambda: "again", slow=True, gone=never)
        assert queue.unfinished == 1, "what looks at no checkpoint goes on to its end"
        stubborn.may_end.set()
        await until(lambda: queue.unfinished == 0)
        return again

    assert run(queue, scene()) == "again"


def test_what_takes_too_long_is_ended_and_told() -> None:
    queue, work = WorkQueue(Limits(slow_s=0.02)), Work()

    async def scene() -> None:
        with pytest.raises(LateError):
            await queue.answer(1, work, slow=True, gone=never)
        await until(lambda: queue.unfinished == 0)

    run(queue, scene())


def test_only_so_many_questions_wait() -> None:
    queue, work = WorkQueue(Limits(slow=1, waiting=3)), Work()

    async def scene() -> None:
        asked = [asyncio.create_task(queue.answer(i, work, slow=True, gone=never)) for i in range(3)]
        await until(lambda: queue.unfinished == 3)
        with pytest.raises(BusyError):
            await queue.answer(4, work, slow=True, gone=never)
        assert await queue.answer(4, lambda: "picture", slow=False, gone=never) == "picture"
        work.may_end.set()
        await asyncio.gather(*asked)

    run(queue, scene())


def test_outside_of_cancellable_work_a_checkpoint_is_passed() -> None:
    checkpoint()
    cancellation = Cancellation()
    cancellation.cancel()
    with pytest.raises(CancelledWorkError), cancellation.work():
        pytest.fail("it must not begin")
    checkpoint()


def test_kept_bodies_are_bounded_in_bytes_and_the_oldest_goes_first() -> None:
    kept = Recent[str](100)
    for name in "abcd":
        kept.put(name, name, 30)
        kept.get("a")
    assert [kept.get(name) for name in "abcd"] == ["a", None, "c", "d"]
    assert kept.size == 90
    kept.put("a", "A", 10)
    assert (kept.get("a"), kept.size) == ("A", 70)
    kept.put("huge", "huge", 101)
    assert kept.get("huge") is None
    assert kept.get("d") == "d", "what is too large to be kept takes nobody's place"
    kept.drop(lambda key: key == "d")
    assert (kept.get("d"), kept.get("a"), kept.size) == (None, "A", 40)


def test_work_in_pieces_shows_how_much_is_done() -> None:
    cancellation, seen = Cancellation(), []
    with cancellation.work():
        for size in pieces([30, 10], [30, 10]):
            seen.append(cancellation.share)
            with piece(0.5, 1.0):  # its first half was there already
                for _ in pieces(range(size // 10)):
                    seen.append(cancellation.share)
    # Three quarters are the first; of its second half three pieces are a third each.
    assert seen == pytest.approx([0, 0.375, 0.5, 0.625, 0.75, 0.875])
    assert cancellation.share == 1
    assert list(pieces("ab")) == ["a", "b"]  # work that nobody watches is the same


def test_work_in_pieces_ends_between_two_of_them() -> None:
    cancellation, done = Cancellation(), []

    def work() -> None:
        for each in pieces([1, 2, 3]):
            done.append(each)
            if each == 2:
                cancellation.cancel()

    with cancellation.work(), pytest.raises(CancelledWorkError):
        work()
    assert done == [1, 2]
