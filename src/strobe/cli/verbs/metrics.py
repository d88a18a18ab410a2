"""`strobe metrics SCRIPT`: hardware metrics of chosen kernels, measured by Nsight Compute in a separate run."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from strobe.cli.options import add_options, add_output, arranged, emit, verbatim
from strobe.cli.programs import HELP, check_script, program_at, require_program
from strobe.errors import StrobeError, TraceError, UsageError
from strobe.model.gpu_metrics import GROUPS
from strobe.model.option import Option
from strobe.model.terminal import talk
from strobe.model.verb import Verb

if TYPE_CHECKING:
    from pathlib import Path

    from strobe.gpu.nvidia.ncu import Launch
    from strobe.tables.table import Table

_DESCRIPTION = """\
Run a program under NVIDIA Nsight Compute (ncu) and show hardware metrics of its GPU kernels: occupancy, memory
traffic, use of the tensor cores. Each chosen kernel runs several times until all metrics are measured, so choose few,
with --kernels and --launch-count.
"""
_EPILOG = f"""\
{HELP}
examples:
  strobe metrics --kernels gemm --metrics achieved_occupancy,ipc,dram_utilization train.py
  strobe metrics --kernels ::gemm:1 --metrics memory,tensor -- python train.py --epochs 1
  strobe metrics --list --chip GH100

The table goes to stderr, or to the file of -o, because stdout belongs to the program. Ends as the program ended.
"""
_LISTED_CHIP = "GH100"
_OPTIONS = {
    "what is measured": (
        Option(
            "metrics",
            f"Names of nvprof, counters of ncu, or groups: {', '.join(GROUPS)}. Default: usual.",
            default="",
            metavar="A,B,...",
        ),
        Option("chip", "Chip whose counters are meant. Default: the chip of the first GPU here.", default=""),
        Option("list", "Print all metrics and the counters of the chip; run nothing.", bool, False),
    ),
    "which kernels": (
        Option(
            "kernels",
            "Kernels whose full name matches; or nvprof's CONTEXT:STREAM:NAME:INVOCATION (::gemm:1). Default: all.",
            default="",
            metavar="REGEX",
        ),
        Option("launch_skip", "Skip the first N of them.", int, least=0, metavar="N"),
        Option("launch_count", "Measure at most N of them.", int, least=0, metavar="N"),
        Option(
            "ncu_option",
            "Pass an option to ncu: --ncu-option=--replay-mode=application. Can be repeated.",
            many=",",
            metavar="WORD",
        ),
    ),
    "what is shown": (
        Option(
            "by",
            "Show mean, min and max of each kernel, or the values of each launch.",
            default="kernel",
            choices=("kernel", "launch"),
        ),
        Option("trace", "Keep the values beside this trace, where strobe kernels shows them.", metavar="TRACE"),
        Option(
            "from",
            "Run nothing; show this file: the output of `ncu --csv` or `nvprof --metrics`, or a report of ncu.",
            argument="table",
            metavar="FILE",
        ),
    ),
}


def run(words: list[str]) -> int:
    """Parse the command line; list metrics, or measure them, show the values, and end as the program ended."""
    reader = verbatim("metrics", _DESCRIPTION, usage="strobe metrics [options] SCRIPT [arguments]", epilog=_EPILOG)
    for title, options in _OPTIONS.items():
        add_options(reader.add_argument_group(title), options)
    add_output(reader)
    split = program_at(words, reader)
    arguments, program = reader.parse_args(words[:split]), words[split:]
    if arguments.list:
        return emit(_listed(arguments.chip, _words(arguments.metrics)), arguments)
    from strobe.api.trace import open_trace

    folder = open_trace(arguments.trace).path if arguments.trace else None
    if arguments.table:
        if program:
            reader.error("--from reads a file: it cannot be combined with a program to run")
        return _show_file(arguments, folder)
    require_program("metrics", program)
    check_script("metrics", program)
    return _measure(program, arguments, folder)


def _measure(program: list[str], arguments: argparse.Namespace, folder: Path | None) -> int:
    from strobe.gpu.measured_metrics import needed
    from strobe.gpu.nvidia import ncu
    from strobe.gpu.nvidia.metric_names import check, chip_here
    from strobe.model.gpu_metrics import expanded
    from strobe.present import text
    from strobe.record.launch.run_program import end_as, python_command

    chip = arguments.chip or chip_here()
    names = expanded(_words(arguments.metrics or "usual"), chip)
    if not names:
        raise UsageError("--metrics has no names", do="To list all metrics: strobe metrics --list")
    if remark := check(names, chip):
        talk(remark)
    options = [*_launches(arguments), *arguments.ncu_option]
    command = python_command(program)
    # Check the output options now, not after hours, on an empty table with the same columns.
    text.render(arranged(_table([], names, chip, arguments), arguments), arguments.format or "table")
    measured = ncu.measure(command, needed(names, chip), kernels=arguments.kernels, options=options)
    if measured.launches:
        for each in measured.complaints:
            talk(f"ncu: {each}")
        try:
            _show(measured.launches, names, chip, arguments, folder)
        except (StrobeError, OSError) as error:  # print the values anyway, and end as the program ended
            talk(str(error))
            print(text.aligned(_table(measured.launches, names, chip, arguments)), file=sys.stderr)
    else:
        talk(ncu.explained(measured.complaints) or "no kernel was measured, because the program launched none")
        if advice := ncu.what_to_do(measured.complaints):
            talk(advice)
    return end_as(measured.ended)


def _launches(arguments: argparse.Namespace) -> list[str]:
    counts = (("--launch-skip", arguments.launch_skip), ("--launch-count", arguments.launch_count))
    return [word for flag, count in counts if count is not None for word in (flag, str(count))]


def _show_file(arguments: argparse.Namespace, folder: Path | None) -> int:
    from pathlib import Path

    from strobe.formats.ncu.reader import text_of
    from strobe.formats.reading.inputs import one_file
    from strobe.gpu import measured_metrics
    from strobe.gpu.nvidia import ncu, nvprof_metrics

    path = arguments.table
    try:
        text = text_of(one_file(Path(path)))
    except OSError as error:
        raise TraceError(f"cannot read '{path}': {error.strerror}") from error
    except ValueError as error:
        raise TraceError(f"cannot read '{path}': {error}") from error
    if found := ncu.launches(text):
        return _show(found, [], "", arguments, folder)
    summed = ncu.kernel_metrics(text) or nvprof_metrics.kernel_metrics(text)
    if not summed:
        raise TraceError(f"'{path}' contains no kernels", do="Write it with: ncu --csv --page raw --log-file FILE ...")
    if arguments.by == "launch":
        raise UsageError(f"'{path}' has values by kernel only")
    if asked := _words(arguments.metrics):
        measured = {each.metric for each in summed}
        for name in asked:
            if name not in measured:
                do = f"Measured: {', '.join(sorted(measured))}"
                raise UsageError(f"nothing was measured for '{name}'", do=do)
        summed = [each for each in summed if each.metric in asked]
    code = emit(measured_metrics.kernel_table(summed), arguments)
    if folder is not None:
        measured_metrics.keep_by_kernel(folder, summed)
        _tell_kept(folder)
    return code


def _show(
    launches: Sequence[Launch], names: list[str], chip: str, arguments: argparse.Namespace, folder: Path | None
) -> int:
    """Print the table, and keep the values beside a trace. Without names, show all metrics of the file."""
    from strobe.gpu import measured_metrics
    from strobe.model.gpu_metrics import expanded

    chip = arguments.chip or chip
    if not names:
        names = expanded(_words(arguments.metrics), chip) or measured_metrics.present(launches)
        measured_metrics.check_present(names, launches)
    code = emit(_table(launches, names, chip, arguments), arguments, None if arguments.table else sys.stderr)
    if folder is not None:
        measured_metrics.keep(folder, launches, names, chip)
        _tell_kept(folder)
    return code


def _tell_kept(folder: Path) -> None:
    talk(f"kept beside the trace; to show them: strobe kernels {folder} --columns all")


def _table(launches: Sequence[Launch], names: list[str], chip: str, arguments: argparse.Namespace) -> Table:
    from strobe.gpu import measured_metrics

    make = measured_metrics.by_launch if arguments.by == "launch" else measured_metrics.by_kernel
    return make(launches, names, chip)


def _listed(chip: str, asked: list[str]) -> Table:
    """Return the metrics of strobe on a chip, then all counters of the chip.

    With `asked`, only those, with a note on how often ncu runs each kernel to measure all of them.
    """
    from strobe.gpu.nvidia.catalogue import SUFFIXES, open_catalogue
    from strobe.gpu.nvidia.metric_names import chip_here, meant
    from strobe.model.gpu_metrics import TABLE, counters, expanded, formula, has
    from strobe.model.schema import Column
    from strobe.tables.table import make_table

    chip, note = chip or chip_here() or _LISTED_CHIP, ""
    names = expanded(asked, chip)
    ours = [each for each in TABLE if has(chip, each.name) and (not asked or each.name in names)]
    rows = [(each.name, "metric", each.unit, each.about, formula(each.name, chip)) for each in ours]
    try:
        with open_catalogue(chip) as catalogue:
            if asked and (passes := catalogue.passes(counters(names, chip))):
                note = f"each kernel runs {passes} times on {chip} for these" if passes > 1 else "each kernel runs once"
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
        raise UsageError(f"{chip} has no metric '{asked[0]}'", do=near or "To list all metrics: strobe metrics --list")
    columns = (
        Column("name", "string", "", "name"),
        Column("type", "string", "", "metric (a formula over counters), counter, ratio or throughput"),
        Column("unit", "string", "", "unit of the values; of counters, before their suffix"),
        Column("meaning", "string", "", "meaning"),
        Column("formula", "string", "", "counters in the formula", extra=True),
    )
    about = f"metrics and counters of {chip}"
    return make_table(columns, rows, name="gpu_metrics", about=about, note=note, shows=len(ours))


def _words(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]


VERB = Verb("metrics", "Measure hardware metrics of chosen GPU kernels", run)
