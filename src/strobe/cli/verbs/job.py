"""`strobe job`: the processes of a running job, and requests to them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from strobe.cli.options import add_options, verbatim
from strobe.errors import UsageError
from strobe.model import exit_codes
from strobe.model.option import Option
from strobe.model.terminal import talk
from strobe.model.verb import Verb

if TYPE_CHECKING:
    from strobe.record.launch.job_control import Job, Leader

_DESCRIPTION = """\
List the recorded processes of a running job, or let all that are armed (strobe run --armed) record the same steps.

  strobe job                        its processes on all nodes: rank, steps, whether they record
  strobe job record --steps 20      20 steps of all ranks, from one common step on
  strobe job record --for 10s       10 seconds, from now on where no steps are counted
  strobe job record                 of a flight recorder (strobe run --flight): the last minutes
"""
_OPTIONS = (
    Option("steps", "Record this many steps.", int, least=1, metavar="N"),
    Option("for", "Record at most so long.", float, unit="s", argument="seconds", metavar="TIME"),
    Option("trace", "Trace of the job. Default: the newest in this folder that is being recorded.", metavar="TRACE"),
    Option("wait", "Wait so long for answers.", float, 10.0, unit="s", metavar="TIME"),
)


def run(words: list[str]) -> int:
    """Parse the command line; list processes, or ask them to record and wait until they have."""
    parser = verbatim("job", _DESCRIPTION, usage="strobe job [record] [options]")
    parser.add_argument("action", nargs="?", default="list", choices=("list", "record"))
    add_options(parser, _OPTIONS)
    arguments = parser.parse_args(words)
    from strobe.record.launch import job_control

    job = job_control.Job(arguments.trace or job_control.newest_job())
    if arguments.action == "list":
        return _list(job, arguments.wait)
    if job_control.is_flight(job.trace):
        for path in job_control.request_flight(job.trace, arguments.wait):
            talk(f"the flight recorder wrote {path}")
        return exit_codes.OK
    if arguments.steps is None and arguments.seconds is None:
        raise UsageError("how much is to be recorded?", do="strobe job record --steps 20, or --for 10s")
    for_ns = round((arguments.seconds or 0) * 1e9)
    asked = job_control.request(job, arguments.steps or 0, for_ns, arguments.wait)
    _tell_silent_nodes(asked.silent_nodes, arguments.wait)
    for each in asked.silent:
        talk(
            f"{each.name} (pid {each.pid}) has not answered for {arguments.wait:g} s: its main thread is in native code"
        )
    if len(asked.silent) == len(asked.ranks):
        return exit_codes.FAILED
    begin = "at once" if asked.begin_step is None else f"at step {asked.begin_step}"
    answered = [each for each in asked.ranks if each.file not in {silent.file for silent in asked.silent}]
    parts = [f"{arguments.steps} steps"] if arguments.steps else []
    much = " and ".join([*parts, *([f"{arguments.seconds:g} s"] if for_ns else [])])
    count = len(asked.ranks) + sum(map(len, asked.silent_nodes.values()))
    talk(f"{len(answered)} of {count} processes record {much}, beginning {begin}, into {job.trace}")
    wait_s = float("inf") if asked.begin_step else arguments.wait
    try:
        job.until(answered, lambda now: now.opened >= asked.number, wait_s)
        job.until(answered, lambda now: not now.open, float("inf"))
    except KeyboardInterrupt:
        talk("they go on")
        return exit_codes.OK
    late = [
        each
        for each in job.leaders()
        if asked.begin_step is not None and each.opened == asked.number and each.opened_step > asked.begin_step
    ]
    for each in late:
        talk(f"{each.name} (pid {each.pid}) began at step {each.opened_step}: the request came too late for it")
    talk("recorded")
    return exit_codes.FAILED if asked.silent or asked.silent_nodes or late else exit_codes.OK


def _list(job: Job, wait_s: float) -> int:
    from strobe.present.aligned import aligned_rows

    silent_nodes = job.hear(wait_s)
    found = job.leaders()
    nodes = len({each.host for each in found}) > 1
    rows = [("rank", *(("node",) if nodes else ()), "pid", "steps", "state")]
    for each in found:
        state = "records" if each.open else "armed" if each.armed else "paused"
        rank = "" if each.rank is None else str(each.rank)
        host = (each.host,) if nodes else ()
        rows.append((rank, *host, str(each.pid), str(each.steps) if each.armed else "", state))
    print(job.trace, *aligned_rows(rows), sep="\n")
    _tell_silent_nodes(silent_nodes, wait_s)
    return exit_codes.OK


def _tell_silent_nodes(nodes: Mapping[str, Sequence[Leader]], wait_s: float) -> None:
    for host, processes in nodes.items():
        names = ", ".join(f"{each.name} (pid {each.pid})" for each in processes)
        talk(f"node {host} has not answered for {wait_s:g} s: {names}")


VERB = Verb("job", "List the processes of a running job, or let armed ones record the same steps", run)
