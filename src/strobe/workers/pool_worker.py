"""What a process of the pool runs: tasks come on stdin, answers leave on stdout, as pickles that only we write."""

from __future__ import annotations

import os
import signal
import sys
import traceback
from typing import Any, cast

from strobe.workers.map_combine import Task
from strobe.workers.process_pool import receive, send


class _NoPandas:
    """Says that there is no pandas: pyarrow imports it for a second, to see whether its first array is one of it."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        if name == "pandas":
            raise ModuleNotFoundError("No module named 'pandas'", name="pandas")


def main() -> None:
    """Run tasks until there are no more."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    sys.meta_path.insert(0, cast(Any, _NoPandas()))
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    # Whatever prints must not land among the answers.
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    while True:
        try:
            send(answers, cast(Task, receive(sys.stdin.buffer)).run())
        except (EOFError, BrokenPipeError):  # nobody asks, or waits for an answer, any more
            return
        except Exception as error:
            error.add_note("".join(traceback.format_exception(error)))
            send(answers, error)


if __name__ == "__main__":
    main()
