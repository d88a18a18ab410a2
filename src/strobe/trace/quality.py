"""The quality table: what was lost, cut, or spent, and how each process ended."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from strobe.model.losses import loss_sentences, sentence
from strobe.model.units import format_ns
from strobe.tables.table import Table, make_table
from strobe.trace import archive
from strobe.trace.after_run import process_starts
from strobe.trace.clocks import node_clocks

if TYPE_CHECKING:
    from strobe.trace.processes.recorded_processes import RecordedProcesses

_Row = tuple[object, ...]  # process, pid, counter, number, words


def quality_table(recorded: RecordedProcesses) -> Table:
    """Return one row for each counter of a process, of a node's GPUs, or of the trace as a whole."""
    rows: list[_Row] = []
    sizes = archive.sizes(recorded.files)
    for process, (reader, fact) in enumerate(zip(recorded.readers, recorded.facts, strict=True)):
        pid = fact["pid"]
        rows.append((process, pid, "ended", None, recorded.endings[process]))
        counters = sorted(reader.quality().items())
        rows += [(process, pid, name, count, (count and sentence(name, count)) or None) for name, count in counters]
        gpu = fact.get("gpu", {})
        rows += [(process, pid, f"gpu_{key}".replace(" ", "_"), None, text) for key, text in gpu.items()]
        if recorded.files:
            rows.append((process, pid, "size_bytes", sizes[process], None))
            note = recorded.job.processes.get(recorded.files[process].blocks.stem, {})
            if "clock" in note:
                error_ns = archive.whole_number(note.get("clock_error_ns"))
                rows.append((process, pid, "clock_error_ns", error_ns, note["clock"]))
    rows += [(None, pid, "unreadable", None, why) for pid, why in recorded.unreadable]
    checked = node_clocks.read_repairs(recorded.path).checked
    rows += [(None, None, name, count, sentence(name, count) or None) for name, count in checked.items()]
    rows += [(None, None, name, None, text) for name, text in flight_facts(recorded).items()]
    if recorded.job.lost:
        rows.append((None, None, "unreadable", None, recorded.job.lost))
    notes = archive.notes(recorded.path)
    rows += [(None, None, "unrecorded", None, note) for note in notes]
    for content in (node.content for node in recorded.gpus.values()):
        if lost := content.bytes_lost:
            rows.append((None, None, "bytes_lost", lost, sentence("bytes_lost", lost)))
        rows += [(None, None, "gpus_not_read", None, text) for text in content.missing]
        rows += [(None, None, "gpu_metrics_refused", None, text) for text in content.refused]
    missing = process_starts.unrecorded(recorded.starts, recorded.facts, notes)
    rows += [(None, None, "unrecorded", None, text) for text in missing.pythons]
    for name, commands, listed in (
        ("other_pythons", missing.left_out, process_starts.names_of_left_out),
        ("other_programs", missing.others, process_starts.names_of),
    ):
        if commands:
            rows.append((None, None, name, sum(commands.values()), listed(commands)))
    return make_table("quality", rows)


def flight_facts(recorded: RecordedProcesses) -> dict[str, str]:
    """Return what a flight recorder left out of the run, and why it wrote this trace, in words."""
    flight, found = recorded.job.flight, {}
    since = [each["started_ns"] - recorded.zero_ns for each in recorded.facts if each.get("left_out")]
    if since:
        first = min(each["started_ns"] - recorded.zero_ns for each in recorded.facts)
        before = archive.whole_number(flight.get("left_out_ns")) or 0
        text = f"a flight recorder left out the first {format_ns(before + first)} of the run"
        if max(since) > first:
            text += f"; all processes are complete from {format_ns(max(since))} on"
        found["left_out"] = text
    if event := archive.sound_text(flight.get("event", "")):
        found["written_for"] = f"written for: {event}"
    return found


def losses(recorded: RecordedProcesses) -> list[str]:
    """Return a sentence for everything that is missing: counted, unreadable or not recorded."""
    texts = [str(text) for *_, what, _, text in recorded.quality.rows() if what in ("unreadable", "unrecorded")]
    return loss_sentences(counters(recorded)) + texts


def counters(recorded: RecordedProcesses) -> Counter[str]:
    """Return the counters of the quality table, summed over all processes."""
    total: Counter[str] = Counter()
    for _, _, what, value, _ in recorded.quality.rows():
        if isinstance(value, int):
            total[str(what)] += value
    return total
