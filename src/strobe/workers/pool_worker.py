"""The program of a process of the pool: reads tasks from stdin, writes answers to stdout, as pickles."""

from __future__ import annotations

import os
import pickle
import signal
import sys
import traceback
from typing import Any

from strobe.workers.map_combine import Task
from strobe.workers.process_pool import send


class _NoPandas:
    """Hides pandas: pyarrow would import it, which takes a second, to see whether its first array is from there."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        if name == "pandas":
            raise ModuleNotFoundError("No module named 'pandas'", name="pandas")


def main() -> None:
    """Run tasks until the pool ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    no_pandas: Any = _NoPandas()
    sys.meta_path.insert(0, no_pandas)
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    # Whatever prints must not land among the answers.
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    while True:
        try:
            task: Task = pickle.load(sys.stdin.buffer)
            send(answers, task.run())
        except (EOFError, BrokenPipeError, pickle.UnpicklingError):  # the pool has ended
            return
        except Exception as error:
            error.add_note("".join(traceback.format_exception(error)))
            send(answers, error)


if __name__ == "__main__":
    main()
