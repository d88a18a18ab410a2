"""How often the steps are found: all programs of the corpus, recorded once and judged against their own truth.

./dev bench corpus                 all programs
./dev bench corpus mlp gan         some
./dev bench corpus --online        what was found while the programs ran, and after how many steps
./dev bench corpus --any-recorder  after a change of the search only: take older recordings
./dev bench corpus --fresh         record anew (recordings are kept in build/corpus, by program text and recorder)
./dev bench corpus --times 5       record anew so many times, and count how often each program is right: start it beside
                                   busy processes to see what depends on the machine's load
"""

import argparse
import sys
from collections.abc import Sequence

from measure import table

from tests.corpus.judge import Verdict, judge
from tests.corpus.online import Online, judge_online
from tests.corpus.programs import GROUPS, Program, programs, record


def main() -> None:
    options = parse_arguments()
    chosen = [program for program in programs() if not options.names or program.name in options.names]
    if options.group:
        chosen = [program for program in chosen if program.group == options.group]
    if options.online:
        online(chosen, options)
    elif options.times:
        again_and_again(chosen, options.times)
    else:
        offline(chosen, options)


def offline(chosen: Sequence[Program], options: argparse.Namespace) -> None:
    """Record everything, and print which steps are found afterwards."""
    verdicts = []
    for program in chosen:
        try:
            verdicts.append(judge(record(program, fresh=options.fresh, any_recorder=options.any_recorder)))
        except Exception as error:  # one that crashes the search must not hide the others
            print(f"{program.name}: {error!r}", file=sys.stderr)
            continue
        print(line(verdicts[-1]), file=sys.stderr, flush=True)
    print(table([row(verdict) for verdict in verdicts]))
    for group in GROUPS:
        print(figure(group, [verdict for verdict in verdicts if verdict.group == group]))


def online(chosen: Sequence[Program], options: argparse.Namespace) -> None:
    """Record with the usual options, so that iterations are folded, and print what was accepted when."""
    verdicts = []
    for program in chosen:
        try:
            verdicts.append(judge_online(record(program, (), options.fresh, options.any_recorder)))
        except Exception as error:  # one that crashes the search must not hide the others
            print(f"{program.name}: {error!r}", file=sys.stderr)
            continue
        print(*online_row(verdicts[-1]).values(), file=sys.stderr, flush=True)
    print(table([online_row(verdict) for verdict in verdicts]))
    for group in GROUPS:
        of_group = [verdict for verdict in verdicts if verdict.group == group]
        accepted = [verdict for verdict in of_group if verdict.accepted]
        early = sum(verdict.accepted_at <= 15 for verdict in accepted)
        print(
            f"{group}: {len(of_group)} programs: {len(accepted)} accepted a loop, {early} of them by iteration 15, "
            f"{sum(verdict.right for verdict in accepted)} the right one; "
            f"steps right in the end {sum(verdict.steps_right for verdict in of_group)}"
        )


def again_and_again(chosen: Sequence[Program], times: int) -> None:
    """Record every program several times, and print how often its steps are right."""
    always = right = 0
    for program in chosen:
        verdicts = [judge(record(program, fresh=True)) for _ in range(times)]
        count = sum(verdict.first for verdict in verdicts)
        always, right = always + (count == times), right + count
        misled = " HIGH" * any(verdict.misleading for verdict in verdicts)
        print(f"{program.group:<7} {program.name:<24} {count} of {times}{misled}", flush=True)
    print(f"{always} of {len(chosen)} programs always right, {right} of {len(chosen) * times} recordings")


def online_row(verdict: Online) -> dict[str, object]:
    """A program's line of the table."""
    return {
        "set": verdict.group,
        "program": verdict.name,
        "loops": max((each.loops for each in verdict.processes), default=0),
        "accepted at": verdict.accepted_at if verdict.accepted else "-",
        "records": "-" if not verdict.accepted else "right" if verdict.right else "WRONG",
        "steps": "right" if verdict.steps_right else "WRONG",
        "reason": verdict.processes[0].reason if verdict.processes else "",
    }


def line(verdict: Verdict) -> str:
    """Progress, one line a program."""
    mark = "right" if verdict.first else "among five" if verdict.any_of_five else "WRONG"
    return f"{verdict.group:<7} {verdict.name:<24} {mark}{' HIGH' * verdict.misleading}"


def row(verdict: Verdict) -> dict[str, object]:
    """A program's line of the table; of several ranks the one that is worst off."""
    worst = min(verdict.processes, key=lambda each: (each.first is not None, each.any_of_five is not None))
    return {
        "set": verdict.group,
        "program": verdict.name,
        "processes": len(verdict.processes),
        "right first": worst.first or "-",
        "among five of": ", ".join(name for name, kind in worst.lists.items() if kind) or "-",
        "found": worst.steps,
        "true": worst.true_steps,
        "confidence": worst.confidence,
        "reason": worst.reason,
    }


def figure(name: str, verdicts: Sequence[Verdict]) -> str:
    """One set's figure in one line."""
    first, strict, five, misleading = (
        sum(getattr(each, what) for each in verdicts) for what in ("first", "strict", "any_of_five", "misleading")
    )
    right = f"right first {first} ({strict} without the accepted others), among the first five {five}"
    return f"{name}: {len(verdicts)} programs: {right}, wrong and `high` {misleading}"


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="programs (default: all)")
    parser.add_argument("--group", choices=GROUPS, help="only one set")
    parser.add_argument("--any-recorder", action="store_true", help="take recordings that an earlier recorder made")
    parser.add_argument("--online", action="store_true", help="judge what was found while the program ran")
    parser.add_argument("--times", type=int, default=0, help="record anew so many times, and count")
    parser.add_argument("--fresh", action="store_true", help="record anew")
    return parser.parse_args()


if __name__ == "__main__":
    main()
