"""`strobe job`: the processes of a running job, and requests to them."""

from __future__ import annotations

from strobe.cli.options import add_options, verbatim
from strobe.errors import UsageError
from strobe.model import exit_codes
from strobe.model.option import Option
from strobe.model.terminal import talk
from strobe.model.verb import Verb

_DESCRIPTION = """\
List the recorded processes of a running job, or let all that are armed (strobe run --armed) record the same steps.

  strobe job                        processes on this machine: rank, steps, whether they record
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

    trace = arguments.trace or job_control.newest_job()
    if arguments.action == "list":
        return _list(trace)
    if job_control.is_flight(trace):
        for path in job_control.request_flight(trace, arguments.wait):
            talk(f"the flight recorder wrote {path}")
        return exit_codes.OK
    if arguments.steps is None and arguments.seconds is None:
        raise UsageError("how much is to be recorded?", do="strobe job record --steps 20, or --for 10s")
    for_ns = round((arguments.seconds or 0) * 1e9)
    asked = job_control.request(trace, arguments.steps or 0, for_ns, arguments.wait)
    for each in asked.silent:
        talk(
            f"{each.name} (pid {each.pid}) has not answered for {arguments.wait:g} s: its main thread is in native code"
        )
    _tell_hosts(trace)
    if len(asked.silent) == len(asked.ranks):
        return exit_codes.FAILED
    begin = "at once" if asked.begin_step is None else f"at step {asked.begin_step}"
    answered = [each for each in asked.ranks if each.file not in {silent.file for silent in asked.silent}]
    parts = [f"{arguments.steps} steps"] if arguments.steps else []
    much = " and ".join([*parts, *([f"{arguments.seconds:g} s"] if for_ns else [])])
    talk(f"{len(answered)} of {len(asked.ranks)} processes record {much}, beginning {begin}, into {trace}")
    try:
        job_control.until(trace, answered, lambda now: now.open, float("inf") if asked.begin_step else arguments.wait)
        job_control.until(trace, answered, lambda now: not now.open, float("inf"))
    except KeyboardInterrupt:
        talk("they go on")
        return exit_codes.OK
    talk("recorded")
    return exit_codes.FAILED if asked.silent else exit_codes.OK


def _list(trace: str) -> int:
    from strobe.present.aligned import aligned_rows
    from strobe.record.launch import job_control

    found, _ = job_control.leaders(trace)
    rows = [("rank", "pid", "steps", "state")]
    for each in found:
        state = "records" if each.open else "armed" if each.armed else "paused"
        rank = "" if each.rank is None else str(each.rank)
        rows.append((rank, str(each.pid), str(each.steps) if each.armed else "", state))
    print(trace, *aligned_rows(rows), sep="\n")
    _tell_hosts(trace)
    return exit_codes.OK


def _tell_hosts(trace: str) -> None:
    from strobe.record.launch import job_control

    if hosts := job_control.leaders(trace)[1]:
        talk(f"processes on {', '.join(hosts)} are reached from there only: run this on each")


VERB = Verb("job", "List the processes of a running job, or let armed ones record the same steps", run)
