"""A program that is in the middle of something when it is attached to.

It makes a file once it is in its moment, stays there until another file is there, and then ends. What it prints and
how it ends must be the same without strobe; `tick` is called in the moment, so that the trace has something to show.
"""

from __future__ import annotations

from dataclasses import dataclass

BEGIN = """\
import os, sys, time
def ready():
    open(os.environ["MOMENT_READY"], "w").close()
LIMIT = time.monotonic() + 60
def stay():
    return not os.path.exists(os.environ["MOMENT_DONE"]) and time.monotonic() < LIMIT
def tick():
    return sum(range(20))
def moment(pause=0.001):
    ready()
    while stay():
        tick()
        time.sleep(pause)
"""


@dataclass(frozen=True)
class Moment:
    """The text of a program behind BEGIN, which ends with an exit `code`. `ends`: within the window. `kills`: it
    ends processes of its own by a signal, as a pool does. `ticks`: the trace must have calls of tick. `refused`: a part
    of the sentence with which it is not attached to.
    """

    text: str
    ends: bool = False
    kills: bool = False
    code: int = 0
    ticks: bool = True
    refused: str = ""
