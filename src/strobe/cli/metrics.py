"""`strobe metrics SCRIPT`: hardware metrics of chosen kernels, measured by Nsight Compute in a run of their own."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from strobe.cli.options import Parser, add_output, arranged, check_script, emit, program_at, verbatim
from strobe.errors import StrobeError, TraceError, UsageError
from strobe.model.verb import Verb

if TYPE_CHECKING:
    from pathlib import Path

    from strobe.gpu.ncu import Launch
    from strobe.store.table import Table

_DESCRIPTION = """\
Run a program under NVIDIA Nsight Compute (ncu) and show hardware metrics of its GPU kernels: how full they make the
GPU, what they do with memory, how busy the tensor cores are. A chosen kernel runs several times until all is measured,
so choose few: with --kernels, and with --launch-count.
"""
_WHAT = """\
what to run (options of strobe come before it):
  SCRIPT [arguments]      -m MODULE [arguments]      -c CODE [arguments]      -- COMMAND [arguments]

examples:
  strobe metrics --kernels gemm --metrics achieved_occupancy,ipc,dram_utilization train.py
  strobe metrics --kernels ::gemm:1 --metrics memory,tensor -- python train.py --epochs 1
  strobe metrics --list --chip GH100

The table goes to stderr, or where -o says: stdout is the program's. Ends as the program ended.
"""
_LISTED_CHIP = "GH100"


def run(words: list[str]) -> int:
    """Parse the command line; list what there is, or measure, show what was measured, and end as the program ended."""
    reader = _parser()
    split = program_at(words, reader)
    arguments, program = reader.parse_args(words[:split]), words[split:]
    if arguments.list:
        return emit(_listed(arguments.chip, _words(arguments.metrics)), arguments)
    folder = _trace_folder(arguments.trace) if arguments.trace else None
    if arguments.table:
        if program:
            reader.error("--from reads what was measured: there is no program to run")
        return _show(_read(arguments.table), [], "", arguments, folder)
    if not program or program in (["--"], ["-m"], ["-c"]):
        raise UsageError(
            "nothing to run", do="strobe metrics [options] SCRIPT [arguments]; more: strobe metrics --help"
        )
    check_script("metrics", program)
    return _measure(program, arguments, folder)


def _parser() -> Parser:
    from strobe.model.gpu_metrics import GROUPS

    reader = verbatim("metrics", _DESCRIPTION, usage="strobe metrics [options] SCRIPT [arguments]", epilog=_WHAT)
    what = reader.add_argument_group("what is measured")
    what.add_argument(
        "--metrics",
        default="",
        metavar="A,B,...",
        help=f"names of nvprof, counters of ncu, or groups: {', '.join(GROUPS)}; default: usual",
    )
    what.add_argument("--chip", default="", help="chip whose counters are meant; default: that of the first GPU here")
    what.add_argument(
        "--list", action="store_true", help="print all metrics, and the counters of the chip; run nothing"
    )
    which = reader.add_argument_group("of which kernels")
    which.add_argument(
        "--kernels",
        default="",
        metavar="REGEX",
        help="whose full name matches; or CONTEXT:STREAM:NAME:INVOCATION as nvprof has it (::gemm:1); default: all",
    )
    which.add_argument("--launch-skip", type=int, metavar="N", help="not the first N of them")
    which.add_argument("--launch-count", type=int, metavar="N", help="at most N of them")
    which.add_argument(
        "--ncu-option",
        action="append",
        default=[],
        metavar="WORD",
        help="hand an option to ncu: --ncu-option=--replay-mode=application; again for each",
    )
    shown = reader.add_argument_group("what is shown")
    shown.add_argument(
        "--by", choices=("kernel", "launch"), default="kernel", help="mean, min and max of each kernel, or each launch"
    )
    shown.add_argument("--trace", metavar="TRACE", help="keep the values beside this trace: strobe kernels shows them")
    shown.add_argument(
        "--from", dest="table", metavar="FILE", help="run nothing: show what `ncu --csv --page raw` has written"
    )
    add_output(reader)
    return reader


def _measure(program: list[str], arguments: argparse.Namespace, folder: Path | None) -> int:
    from strobe.gpu import ncu
    from strobe.gpu.names import check, chip_here
    from strobe.model.gpu_metrics import expanded
    from strobe.present import text
    from strobe.record.launch import end_as, python_command
    from strobe.structure.gpu_counters import needed

    chip = arguments.chip or chip_here()
    names = expanded(_words(arguments.metrics or "usual"), chip)
    if not names:
        raise UsageError("--metrics names nothing", do="What there is: strobe metrics --list")
    if remark := check(names, chip):
        _talk(remark)
    options = [*_launches(arguments), *arguments.ncu_option]
    command = python_command(program)
    # What cannot be shown is refused now, not after hours: an empty table has the same columns.
    text.render(arranged(_table([], names, chip, arguments), arguments), arguments.format or "table")
    measured = ncu.measure(command, needed(names, chip), kernels=arguments.kernels, options=options)
    if measured.launches:
        for each in measured.complaints:
            _talk(f"ncu: {each}")
        try:
            _show(measured.launches, names, chip, arguments, folder)
        except (StrobeError, OSError) as error:  # nothing that was measured is lost, and the program's end comes first
            _talk(str(error))
            print(text.aligned(_table(measured.launches, names, chip, arguments)), file=sys.stderr)
    else:
        _talk(ncu.explained(measured.complaints) or "no kernel was measured: the program launched none")
        if advice := ncu.what_to_do(measured.complaints):
            _talk(advice)
    return end_as(measured.ended)


def _launches(arguments: argparse.Namespace) -> list[str]:
    options = []
    for name in ("launch_skip", "launch_count"):
        count = getattr(arguments, name)
        if count is not None:
            if count < 0:
                raise UsageError(f"--{name.replace('_', '-')} counts launches")
            options += [f"--{name.replace('_', '-')}", str(count)]
    return options


def _read(path: str) -> list[Launch]:
    from strobe.gpu.ncu import launches

    try:
        with open(path, encoding="utf-8", errors="replace") as stream:
            found = launches(stream.read())
    except OSError as error:
        raise TraceError(f"cannot read '{path}': {error.strerror}") from error
    if not found:
        raise TraceError(f"'{path}' holds no kernels", do="Write it with: ncu --csv --page raw --log-file FILE ...")
    return found


def _show(
    launches: Sequence[Launch], names: list[str], chip: str, arguments: argparse.Namespace, folder: Path | None
) -> int:
    """Send the table where the options say, and keep the values beside a trace. Without names: all that are there."""
    from strobe.model.gpu_metrics import expanded
    from strobe.structure import gpu_counters

    chip = arguments.chip or chip
    if not names:
        names = expanded(_words(arguments.metrics), chip) or gpu_counters.present(launches)
        gpu_counters.check_present(names, launches)
    code = emit(_table(launches, names, chip, arguments), arguments, None if arguments.table else sys.stderr)
    if folder is not None:
        gpu_counters.keep(folder, launches, names, chip)
        _talk(f"kept beside the trace; to see them: strobe kernels {folder} --columns all")
    return code


def _table(launches: Sequence[Launch], names: list[str], chip: str, arguments: argparse.Namespace) -> Table:
    from strobe.structure import gpu_counters

    make = gpu_counters.by_launch if arguments.by == "launch" else gpu_counters.by_kernel
    return make(launches, names, chip)


def _trace_folder(name: str) -> Path:
    from strobe.store.trace import open_trace

    return open_trace(name).path


def _listed(chip: str, asked: list[str]) -> Table:
    """Return our metrics as they are measured on a chip, and behind them all counters that the chip has.

    If some are asked for, only those, and how often ncu has to run a kernel for all of them.
    """
    from strobe.gpu.catalogue import SUFFIXES, open_catalogue
    from strobe.gpu.names import chip_here, meant
    from strobe.model.gpu_metrics import TABLE, counters, expanded, formula, has
    from strobe.model.schema import Column
    from strobe.store.table import make_table

    chip, note = chip or chip_here() or _LISTED_CHIP, ""
    names = expanded(asked, chip)
    ours = [each for each in TABLE if has(chip, each.name) and (not asked or each.name in names)]
    rows = [(each.name, "metric", each.unit, each.about, formula(each.name, chip)) for each in ours]
    try:
        with open_catalogue(chip) as catalogue:
            if asked and (passes := catalogue.passes(counters(names, chip))):
                note = f"for these a kernel runs {passes} times on {chip}" if passes > 1 else "a kernel runs once"
            for name, kind in catalogue.base_metrics.items():
                if asked and name not in {each.partition(".")[0] for each in names}:
                    continue
                known = catalogue.counter(name) or catalogue.counter(f"{name}.{SUFFIXES[kind][0]}")
                rows.append((name, kind, known.unit if known else "", known.about if known else "", ""))
    except UsageError:
        raise
    except StrobeError as error:
        note = f"counters of {chip} are not listed: {error}"
    if asked and not rows:
        near = meant(asked[0], [each.name for each in TABLE])
        raise UsageError(f"no metric '{asked[0]}' of {chip}", do=near or "What there is: strobe metrics --list")
    columns = (
        Column("name", "string", "", "name"),
        Column("type", "string", "", "metric (a formula over counters), counter, ratio or throughput"),
        Column("unit", "string", "", "of its values, of counters before their suffix"),
        Column("meaning", "string", "", "what it says"),
        Column("formula", "string", "", "counters that it is made of", extra=True),
    )
    about = f"metrics and counters of {chip}"
    return make_table(columns, rows, name="gpu_metrics", about=about, note=note, shows=len(ours))


def _words(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]


def _talk(sentence: str) -> None:
    print(f"strobe: {sentence}", file=sys.stderr)


VERB = Verb("metrics", "Measure hardware metrics of chosen GPU kernels", run)
