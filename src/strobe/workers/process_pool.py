"""A pool of processes on this computer that answer questions about big traces."""

from __future__ import annotations

import contextlib
import os
import pickle
import subprocess
import sys
from collections import deque
from collections.abc import Sequence
from typing import IO, TYPE_CHECKING, Any

from strobe.errors import StrobeError
from strobe.workers.map_combine import Partial, Task, balanced, combined

if TYPE_CHECKING:
    from strobe.trace.trace import Trace

# With fewer spans the processes cost more (for their imports) than they save: see docs/how-to/cluster.md.
LEAST_SPANS = 20_000_000
# Parts for each process: the last ones to be done should not be long.
_PARTS_EACH = 4


class Pool:
    """Runs `strobe.workers.pool_worker` so many times, for as long as a question lasts.

    Not by `multiprocessing`: its processes would run the user's script anew, or be forks of a process with threads.
    """

    def __init__(self, jobs: int, *, least_spans: int = 0) -> None:
        self._jobs, self._least_spans = jobs, least_spans
        self.threads = jobs

    def wanted(self, trace: Trace) -> bool:
        """Return whether a question about this trace takes longer than starting the processes."""
        return self._jobs > 1 and trace.span_count >= self._least_spans

    def parts(self, spans: Sequence[int]) -> list[range]:
        """Cut processes into parts of about equal work."""
        return balanced(spans, self._jobs * _PARTS_EACH, len(spans))

    def answer(self, tasks: Sequence[Any]) -> Partial:
        """Run all tasks, and combine what they return. Raises StrobeError if a process dies."""
        from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait  # every opened trace has a pool

        waiting, found = deque(enumerate(tasks)), dict[int, Partial]()
        with contextlib.ExitStack() as stack:
            workers = [stack.enter_context(_Worker()) for _ in range(min(self._jobs, len(tasks)))]
            # Left in the opposite order: processes end first, and so do the threads that wait for them.
            threads = ThreadPoolExecutor(len(workers))
            stack.callback(threads.shutdown)
            for worker in workers:
                stack.callback(worker.kill)
            served = [threads.submit(_serve, worker, waiting, found) for worker in workers]
            done, _ = wait(served, return_when=FIRST_EXCEPTION)
            for each in done:
                each.result()
        return combined([found[number] for number in range(len(tasks))])

    def close(self) -> None:
        """Release nothing: processes end with the question."""


def default_jobs() -> int:
    """Return the number of CPUs that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class _Worker:
    """One process. It ignores Ctrl-C (which reaches it, too): we end it."""

    def __init__(self) -> None:
        command = [sys.executable, "-m", "strobe.workers.pool_worker"]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self._pipes = [pipe for pipe in (self._process.stdin, self._process.stdout) if pipe]

    def __enter__(self) -> _Worker:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()
        self._process.wait()
        for pipe in self._pipes:
            with contextlib.suppress(OSError):
                pipe.close()

    def kill(self) -> None:
        self._process.kill()

    def ask(self, task: Task) -> Partial:
        try:
            tasks, answers = self._pipes
            send(tasks, task)
            answer: Partial | BaseException = pickle.load(answers)
        except (OSError, EOFError, pickle.UnpicklingError):  # it may have died in the middle of its answer
            code = self._process.wait()
            how = f"was ended by signal {-code}" if code < 0 else f"ended with exit code {code}"
            raise StrobeError(
                f"a process that worked for this question {how}",
                do="It may have needed more memory than there is: fewer processes need less, --jobs 1 is one.",
            ) from None
        if isinstance(answer, BaseException):
            raise answer
        return answer


def _serve(worker: _Worker, waiting: deque[tuple[int, Task]], found: dict[int, Partial]) -> None:
    """Let a process run the waiting tasks."""
    while True:
        try:
            number, task = waiting.popleft()
        except IndexError:
            return
        found[number] = worker.ask(task)


def send(pipe: IO[bytes], what: object) -> None:
    """Write an object to a pipe, for pickle.load to read."""
    pipe.write(pickle.dumps(what, protocol=5))
    pipe.flush()
