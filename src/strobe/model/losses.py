"""What the counters of the quality table mean when they are not zero."""

from __future__ import annotations

from collections.abc import Mapping

from strobe.model.units import format_count

# Something is missing from the trace, or wrong in it: the counter, and the words after its number. `records_lost` and
# the like are counted by the core, the rest by adapters and by imports.
LOSSES = {
    "records_lost": "records lost (buffers were full)",
    "bytes_lost": "bytes of damaged blocks skipped",
    "unrecorded_ms": "ms outside of the recording windows, not recorded",
    "budget_fewer_iterations": "processes that kept fewer iterations in detail to stay in the budget",
    "budget_hot_functions": "processes that left out hot short functions to stay in the budget",
    "budget_statistics_only": "processes that recorded statistics only, from some moment on, to stay in the budget",
    "budget_no_functions": "processes that recorded no functions, from some moment on, to stay in the budget",
    "metrics_folded": "metrics of the program left out (too many different ones)",
    "signal_taken_over": "signals for recording windows that the program took for itself",
    "short_spans": "calls below --min-duration, in sums only",
    "paths_folded": "call paths folded (too many different ones)",
    "regions_folded": "regions folded (too many different names)",
    "statistics_folded": "executions counted without their call path (too many different ones)",
    "collectives_without_row": "collectives of torch.distributed known as spans only",
    "mpi_call_paths_folded": "MPI calls recorded without their call path (too many different ones)",
    "itt_names_folded": "ITT names folded (too many different ones)",
    "deep_recursion_not_recorded": "recursions too deep for the C stack recorded in part",
    "threads_without_torch_operators": "threads older than torch without operators",
    "nvtx_start_end_ranges_not_recorded": "NVTX start/end ranges not recorded (too many at once)",
    "nvtx_ranges_never_ended": "NVTX start/end ranges left out that had not ended when their recording did",
    "nvtx_names_folded": "NVTX ranges shown as `<other NVTX ranges>` (too many different names)",
    "nvtx_ranges_too_deep": "NVTX ranges nested too deeply to be recorded",
    "weights_are_no_time": "call paths weighed by samples, bytes or events (each shown as 1 ns: no time is known)",
    "weights_by_function_only": "other weights known by function, not by line and call",
    "stream_spans_lost": "kernels and copies lost (buffers were full)",
    "stream_spans_untimed": "kernels and copies without a time left out",
    "gpu_records_dropped": "records of GPUs that CUPTI dropped",
    "gpu_buffers_refused": "requests of CUPTI for a buffer refused (256 MiB were waiting)",
    "gpu_launches_without_work": "launches of which no GPU told what came of them",
    "gpu_buffers_not_in_file": "processes whose GPU records a kill would have taken away (no file for them)",
    "gpu_flush_did_not_end": "flushes of CUPTI that did not end in time: the last records of GPUs are missing",
    "gpu_not_handed_over": "times that GPUs were not handed over to torch.profiler, or back, in time",
    "gpu_events_of_profiler_not_read": "runs of torch.profiler whose GPU events could not be read",
    "packets_dropped": "gaps in the recording of a Perfetto trace",
    "packets_without_state": "packets of a Perfetto trace that refer to what was lost",
    "events_without_clock": "events with times of a clock that nothing relates to the others",
    "events_of_other_kinds": "events of kinds that are not read",
    "damaged_tables": "tables of the imported file read up to a damaged place",
    "truncated_files": "imported files that end before their time",
    "events_without_time": "imported events without a time left out",
    "times_out_of_range": "imported events with an absurd time left out",
    "spans_without_end": "imported spans without an end, shown with no duration",
    "unreadable_values": "imported values of a type that does not fit left out",
    "missing_events": "events that the imported archive states are not in its files",
    "missing_event_files": "locations of the imported archive without their file of events",
    "damaged_chunks": "damaged chunks of imported files skipped",
    "damaged_bytes": "bytes of imported files skipped or unreadable",
    "damaged_records": "damaged records of imported files left out",
    "unknown_records": "imported records of kinds that are not known left out",
    "missing_leaves": "imported spans without an end, cut where the one around them ends",
    "spans_too_deep": "imported spans nested too deeply left out",
    "spans_not_kept": "imported spans left out that overlap more than 1,023 others of their thread",
    "properties_not_kept": "properties of the imported file left out (more than 16 MiB)",
    "undefined_metrics": "imported readings of counters that are not defined left out",
    "metric_values_rounded": "imported readings of counters rounded (more than 53 bits)",
    "rows_left_out": "rows of the imported file about itself left out (too many)",
    "truncated": "file ends in the middle",
    "damaged": "file is damaged: what follows is missing",
    "unreadable_events": "events that could not be read",
    "unreadable_counters": "counter readings that are no numbers",
    "unmatched_leaves": "ends without a begin",
    "spans_cut": "spans without an end, cut where the file ends",
    "negative_durations": "spans that end before they begin, taken as 0",
    # What native/formats/trace_checks.cpp finds in a file of whatever format.
    "orphan_kernels": "kernels whose launch is not in the trace (kept, linked to nothing)",
    "orphan_copies": "copies and sets of memory whose call is not in the trace (kept, linked to nothing)",
    "orphan_launches": "launches whose kernel is not in the trace (kept, linked to nothing)",
    "overlaps_on_streams": (
        "kernels and copies that begin before an earlier one on their stream ends (kept; those that do not nest have "
        "lanes of their own)"
    ),
    "steps_cut": "step marks without an end, cut where the file ends",
    "missing_steps": "steps that the numbers of the step marks leave out",
    "duplicate_correlation_ids": "correlation ids of several launches, or of several kernels of one launch (all kept)",
    "duplicate_operator_ids": "operators with the external id of another one (kept)",
    "duplicate_flow_ids": "flows that begin with the number of another one (kept)",
    "duplicate_definition_ids": "definitions with the number of another one (the last one counts)",
    "ids_not_compared": "ids not looked at for launches and duplicates (too many)",
    "texts_not_utf8": "names and texts that are not UTF-8 (kept, with replacements where they are shown)",
    # Of single formats.
    "bytes_behind_the_end": "bytes behind the end of the imported file's events left out",
    "repaired_events": "imported events that are no sound JSON, mended",
    "times_backwards": "imported times before the one that comes before, kept",
    "interned_texts_lost": "tables of texts of a Perfetto trace that could not be read",
    "unreadable_packets": "packets of a Perfetto trace that could not be read",
    "unreadable_planes": "planes of an XPlane file that could not be read",
    "unreadable_lines": "lines of an XPlane file that could not be read",
    "unreadable_properties": "facts about the imported file that could not be read",
    "unreadable_rows": "rows of the imported file that could not be read",
    "unmatched_completions": "ends of messages without a begin",
    "undefined_regions": "imported spans of regions that are not defined",
    "sends_not_completed": "non-blocking sends without an end",
    "requests_not_completed": "non-blocking receives without an end",
    "profiles_not_understood": "profiles of the imported file that could not be read",
    "samples_not_understood": "samples of the imported profile that could not be read",
    "samples_without_stack": "samples of the imported profile without a call stack left out",
    "samples_without_weight": "samples of the imported profile without a weight left out",
    "events_not_understood": "events of the imported profile that could not be read",
    "frames_not_understood": "frames of the imported profile that could not be read",
    "functions_not_understood": "functions of the imported profile that could not be read",
    "callers_not_understood": "callers of the imported profile that could not be read",
    "lines_out_of_range": "line numbers of the imported profile that are none",
    "frames_too_deep": "frames of the imported profile too deep, counted for their callers",
    "frames_without_function": "frames of the imported profile without a function",
    "frames_without_location": "frames of the imported profile without a location left out",
    "weights_out_of_range": "weights of the imported profile that are too large left out",
    "metrics_damaged": "metrics of the imported profile that could not be read",
    "functions_throttled": "functions not recorded any more: called often, and short (--throttle off records all)",
    "c_functions_hidden_by_a_profiler": "times that a profiler of the program hid C functions from the recorder",
    "functions_folded": "calls of C and C++ functions looked up slowly (too many different ones)",
    "functions_inside_the_recorder": "calls of C and C++ functions inside the recorder (allocators, signal handlers)",
    "threads_without_hardware_counters": "threads without hardware counters (too many of the program's descriptors)",
    "functions_too_deep": "threads with C and C++ functions nested too deeply to be recorded",
    "starts_not_noted": "starts of other processes not noted (too many, no room on the disk, or by another user)",
    "forks_not_recorded": (
        "forked processes not recorded: they could make no files in the trace folder (another user, or no room)"
    ),
    "windows_not_shared": "processes whose children do not hear of strobe.pause() (no room on the disk)",
    "values_not_recorded": "values of strobe.counter() and the like that are no numbers, not recorded",
    "rows_lost": "details of events lost (buffers were full)",
    "rows_outside_spans": "details of events lost with their spans",
    "texts_folded": "texts kept as `<other texts>` (too many different ones)",
    "totals_not_kept": "calls left out of the exact sums (too many functions, peers and communicators)",
    "mpi_requests_that_failed": "MPI requests that ended with an error",
    "samples_not_read": "samples without a call stack (their thread went on while it was read)",
    "sampling_stopped_file_closed": "times that sampling ended early, as the program closed the sampler's file",
    "not_resumed_after_fork": "times that sampling did not go on after a fork",
    "calls_without_lines_while_traced": "calls without counted lines, as the program was traced (debugger, coverage)",
    "functions_without_lines_counted": "functions whose lines were not counted (no room)",
    "lines_not_understood": "lines of the imported profile that could not be read",
    "clock_violations_left": "messages and collectives between nodes in the wrong order after repair of their clocks",
    "recording_stopped_early": "times that recording had to stop while the process went on (why is beside its end)",
}
# Worth knowing, and nothing is missing.
REMARKS = {
    "messages_checked": "messages between nodes compared with the clocks",
    "collectives_checked": "collectives of several nodes compared with the clocks",
    "clock_violations": "of them in the wrong order by the clocks as they were measured; since then repaired",
    "clock_violations_worst_ns": "ns that the worst of them was early by",
    "overlapping_spans": "spans that overlap others of their location without nesting: in lanes of their own",
    "times_rounded": "times rounded to whole nanoseconds",
    "sizes_rounded": "sizes that the imported file has rounded",
    "weights_rounded": "weights of the imported profile rounded to whole numbers",
    "processes_joined": "processes that the imported file cannot tell apart",
    "aggregated_events": "events that the imported file has summed up: marks without a time",
    "clock_unknown": "archives that do not say how fast their clock is: nanoseconds are assumed",
    "tracks_described_late": "tracks of a Perfetto trace that were described after their first event",
    "unknown_fields": "fields of a Perfetto trace that are not known",
    "event_details_of_other_kinds": "details of events of a Perfetto trace that are not kept",
    "long_values_not_kept": "long values of an XPlane file that are not kept",
    "labels_not_kept": "labels of the imported profile that are not kept",
    "columns_not_kept": "columns of the imported profile that are not kept",
    "metrics_not_kept": "metrics of the imported profile that are not kept",
    "threads_folded": "threads of the imported profile shown as one (too many)",
    "frame_addresses_left_out": "addresses of sampled frames left out: their functions have names",
    "statistics_left_out": "rows of statistics left out: they cannot be divided",
    "functions_in_circles": "functions that call each other in circles (their total is at most the one shown)",
    "functions_of_several_callers": "functions with several callers, shown beside these (whose totals hold them, too)",
    "rows_folded": "details of events that went with folded iterations (sums have them)",
    "leaves_unmatched": "ends of spans whose begin was not recorded",
    "nvtx_pops_without_push": "ends of NVTX ranges that never began",
    "mpi_polls_that_found_nothing": "MPI calls that asked for a message, and found none: no spans",
    "stepped_aside_for_torch_profiler": "times that a torch.profiler of the program had the operators for itself",
    "gpu_buffers_of_others": "buffers of another user of CUPTI that came to us, left alone",
    "gpu_overhead_ms": "ms that CUPTI cost the program, as it says itself",
    "gpu_driver_ms": "ms that CUDA's driver took for itself: compiling, loading of kernels, full command buffers",
    "gpu_jit_ms": "ms in which the driver compiled kernels for this GPU (JIT)",
    "gpu_jit_compilations": "times that the driver compiled kernels for this GPU (JIT): the program came without them",
    "gpu_page_faults": "groups of page faults of GPUs on unified memory",
    "gpu_cpu_page_faults": "page faults of the host on unified memory",
    "own_cpu_ns": "ns of CPU time that the recorder's own thread took",
    "hook_cost_ns": "ns of CPU time that being watched cost functions, recorded or not (estimated)",
    "sampler_cpu_ns": "ns of CPU time that sampling took",
    "calls_not_counted": "functions whose calls the file does not count (each shown as 1)",
}
# Counted when an adapter could not start: `not_recorded_` and its name.
NOT_RECORDED = "not_recorded_"
# How many calls of a function were recorded before it was throttled: this and its name.
THROTTLED = "throttled_after: "
_NAMED = 3


def loss_sentences(counted: Mapping[str, int]) -> list[str]:
    """Say what is missing from a trace, or wrong in it, in a sentence a counter; nothing for counters that are 0."""
    known = [sentence(what, counted[what]) for what in LOSSES if counted.get(what)]
    adapters = [what for what in sorted(counted) if what.startswith(NOT_RECORDED) and counted[what]]
    hot = sorted((what for what in counted if what.startswith(THROTTLED)), key=lambda what: -counted[what])[:_NAMED]
    return known + [sentence(what, counted[what]) for what in (*hot, *adapters) if counted[what]]


def sentence(what: str, value: int) -> str:
    """Return a counter of the quality table in words, empty where it is 0 or there are none for it."""
    if not value:
        return ""
    if what.startswith(NOT_RECORDED):
        return f"{what.removeprefix(NOT_RECORDED)} not recorded"
    if what.startswith(THROTTLED):
        return f"{what.removeprefix(THROTTLED)} throttled after {format_count(value)} calls"
    words = LOSSES.get(what) or REMARKS.get(what)
    return f"{format_count(value)} {words}" if words else ""
