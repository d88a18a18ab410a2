"""The meaning of the counters of the quality table, in words."""

from __future__ import annotations

from collections.abc import Mapping

from strobe.model.units import format_count

# Data are missing from the trace, or wrong: the counter, and the words after its number.
LOSSES = {
    "records_lost": "records lost (buffers were full)",
    "flight_requests_lost": "requests of the flight recorder not written (the folder of the trace refused a file)",
    "native_stacks_not_read": "samples without functions of C code (the thread's stack could not be read)",
    "native_stacks_cut": "samples with the innermost functions of C code only (deep stacks)",
    "spans_lost": "spans lost in damaged blocks",
    "spans_missing_ms": "ms of the run in which they began",
    "iterations_lost": "recorded steps lost in damaged blocks",
    "executions_lost": "executions of folded steps lost in damaged blocks",
    "loops_lost": "main loops whose description is lost (damaged blocks)",
    "processes_not_described": "processes whose command and start are lost (damaged blocks)",
    "ends_lost": "processes whose end is lost (damaged blocks)",
    "bytes_lost": "bytes of damaged blocks skipped",
    "unrecorded_ms": "ms not recorded (outside of the recording windows)",
    "budget_fewer_iterations": "processes kept fewer iterations in detail to stay within the budget",
    "budget_hot_functions": "processes left out frequent short functions to stay within the budget",
    "budget_statistics_only": "processes switched to statistics only to stay within the budget",
    "budget_no_functions": "processes stopped recording functions to stay within the budget",
    "metrics_folded": "metrics of the program not recorded (too many different ones)",
    "signal_taken_over": "signals for recording windows used by the program itself",
    "short_spans": "calls shorter than --min-duration, kept only as sums",
    "paths_folded": "call paths folded (too many different ones)",
    "regions_folded": "regions folded (too many different names)",
    "statistics_folded": "executions counted without their call path (too many different ones)",
    "collectives_without_row": "collectives of torch.distributed recorded without their details",
    "mpi_call_paths_folded": "MPI calls recorded without their call path (too many different ones)",
    "itt_names_folded": "ITT names folded (too many different ones)",
    "calls_too_deep": "calls not recorded (recursion too deep for the C stack)",
    "deep_recursion_not_recorded": "recursions too deep for the C stack with an unknown number of calls not recorded",
    "threads_without_torch_operators": "threads without operators (started before torch was imported)",
    "compilations_unreadable": "reports of torch.compile not read (this version of PyTorch differs)",
    "nvtx_start_end_ranges_not_recorded": "NVTX start/end ranges not recorded (too many at once)",
    "requests_not_recorded": "requests of services not recorded (too many at once)",
    "nvtx_ranges_never_ended": "NVTX start/end ranges left out (not ended when recording stopped)",
    "nvtx_names_folded": "NVTX ranges shown as `<other NVTX ranges>` (too many different names)",
    "nvtx_ranges_too_deep": "NVTX ranges not recorded (nested too deeply)",
    "weights_by_function_only": "further weights known only per function, not per line and call",
    "stream_spans_lost": "kernels and copies lost (buffers were full)",
    "stream_spans_untimed": "kernels and copies left out (no time)",
    "gpu_records_dropped": "GPU records dropped by CUPTI",
    "gpu_buffers_refused": "buffer requests of CUPTI refused (256 MiB were waiting)",
    "gpu_launches_without_work": "launches with no matching GPU activity",
    "gpu_buffers_not_in_file": "processes whose GPU records a kill would have lost (no file for them)",
    "gpu_flush_did_not_end": "flushes of CUPTI not finished in time (the last GPU records are missing)",
    "gpu_not_handed_over": "late handovers of GPUs to or from torch.profiler",
    "gpu_events_of_profiler_not_read": "runs of torch.profiler whose GPU events could not be read",
    "packets_dropped": "gaps in the recording of a Perfetto trace",
    "packets_without_state": "packets of a Perfetto trace that refer to lost data",
    "events_without_clock": "events on a clock that cannot be related to the others",
    "events_of_other_kinds": "events of unsupported kinds",
    "damaged_tables": "tables of the imported file read only up to a damaged place",
    "truncated_files": "imported files that end early",
    "events_in_order_only": "imported events without a time (shown a microsecond apart, in their order)",
    "times_of_log": "collectives whose end is when their line of the log was written (durations are exact)",
    "events_without_time": "imported events left out (no time)",
    "times_out_of_range": "imported events left out (impossible time)",
    "spans_without_end": "imported spans without an end (shown with no duration)",
    "unreadable_values": "imported values left out (wrong type)",
    "missing_events": "events declared by the imported archive but missing from its files",
    "missing_event_files": "locations of the imported archive without an event file",
    "damaged_chunks": "damaged chunks of imported files skipped",
    "damaged_bytes": "bytes of imported files skipped or unreadable",
    "damaged_records": "damaged records left out of imported files",
    "unknown_records": "imported records left out (unknown kind)",
    "frees_without_allocation": "imported frees of memory left out (allocated before the recording, or unknown)",
    "readings_not_kept": "counter readings of the imported file not kept",
    "missing_leaves": "imported spans without an end (cut at the end of the enclosing span)",
    "spans_too_deep": "imported spans left out (nested too deeply)",
    "spans_not_kept": "imported spans left out (overlap more than 1,023 others of their thread)",
    "properties_not_kept": "properties of the imported file left out (more than 16 MiB)",
    "undefined_metrics": "imported counter readings left out (undefined counter)",
    "metric_values_rounded": "imported counter readings rounded (more than 53 bits)",
    "rows_left_out": "rows about the imported file left out (too many)",
    "truncated": "file ends early",
    "damaged": "file is damaged (the rest is missing)",
    "unreadable_events": "unreadable events",
    "unreadable_counters": "counter readings that are not numbers",
    "unmatched_leaves": "span ends without a start",
    "spans_cut": "spans without an end (cut at the end of the file)",
    "negative_durations": "spans that end before they start (duration set to 0)",
    # From native/formats/importing/trace_checks.cpp, for files of every format.
    "orphan_kernels": "kernels without their launch in the trace (kept, not linked)",
    "orphan_copies": "copies and memory sets without their call in the trace (kept, not linked)",
    "graph_kernels_without_capture": "kernels of CUDA graphs without an operator (their capture is not certain)",
    "capture_files": "captures of CUDA graphs read from beside the file: its kernels have their operators",
    "orphan_launches": "launches without their kernel in the trace (kept, not linked)",
    "overlaps_on_streams": (
        "kernels and copies that begin before an earlier one on their stream ends (kept; those that do not nest have "
        "lanes of their own)"
    ),
    "steps_cut": "step marks without an end (cut at the end of the file)",
    "missing_steps": "steps missing from the numbering of the step marks",
    "duplicate_correlation_ids": "correlation ids shared by several launches or kernels (all kept)",
    "duplicate_operator_ids": "operators that share an external id (kept)",
    "duplicate_flow_ids": "flows that share a number (kept)",
    "duplicate_definition_ids": "definitions that share a number (the last one is used)",
    "ids_not_compared": "ids not checked for launches and duplicates (too many)",
    "texts_not_utf8": "names and texts that are not UTF-8 (kept; shown with replacement characters)",
    # From single formats.
    "bytes_behind_the_end": "bytes after the end of the imported file's events left out",
    "repaired_events": "imported events with invalid JSON (repaired)",
    "times_backwards": "imported times earlier than the time before them (kept)",
    "interned_texts_lost": "unreadable text tables of a Perfetto trace",
    "unreadable_packets": "unreadable packets of a Perfetto trace",
    "unreadable_planes": "unreadable planes of an XPlane file",
    "unreadable_lines": "unreadable lines of an XPlane file",
    "unreadable_properties": "unreadable properties of the imported file",
    "unreadable_rows": "unreadable rows of the imported file",
    "unmatched_completions": "message ends without a start",
    "undefined_regions": "imported spans of undefined regions",
    "sends_not_completed": "non-blocking sends without an end",
    "requests_not_completed": "non-blocking receives without an end",
    "profiles_not_understood": "unreadable profiles of the imported file",
    "samples_not_understood": "unreadable samples of the imported profile",
    "samples_without_stack": "samples of the imported profile left out (no call stack)",
    "samples_without_weight": "samples of the imported profile left out (no weight)",
    "events_not_understood": "unreadable events of the imported profile",
    "frames_not_understood": "unreadable frames of the imported profile",
    "functions_not_understood": "unreadable functions of the imported profile",
    "callers_not_understood": "unreadable callers of the imported profile",
    "lines_out_of_range": "invalid line numbers of the imported profile",
    "frames_too_deep": "frames of the imported profile nested too deeply (counted for their callers)",
    "stacks_cut": "call stacks of the imported profile without their outermost frames",
    "frames_without_function": "frames of the imported profile without a function",
    "frames_without_location": "frames of the imported profile left out (no location)",
    "weights_out_of_range": "weights of the imported profile left out (too large)",
    "metrics_damaged": "unreadable metrics of the imported profile",
    "functions_throttled": "frequent short functions no longer recorded (--throttle off records all)",
    "c_functions_hidden_by_a_profiler": "times C functions were hidden by a profiler in the program",
    "functions_folded": "slow lookups of C and C++ functions (too many different functions)",
    "functions_inside_the_recorder": "calls of C and C++ functions inside the recorder (allocators, signal handlers)",
    "threads_without_hardware_counters": "threads without hardware counters (the program has too many open files)",
    "functions_too_deep": "threads with C and C++ functions not recorded (nested too deeply)",
    "starts_not_noted": "starts of other processes not recorded (too many, disk full, or another user)",
    "forks_not_recorded": (
        "forked processes not recorded: they could make no files in the trace folder (another user, or no room)"
    ),
    "windows_not_shared": "processes whose children ignore strobe.pause() (disk full)",
    "values_not_recorded": "values of strobe.counter() and similar calls not recorded (not numbers)",
    "rows_lost": "details of events lost (buffers were full)",
    "thread_waits_lost": "short waits of threads lost (many at once)",
    "rows_outside_spans": "details of events lost with their spans",
    "texts_folded": "texts kept as `<other texts>` (too many different ones)",
    "totals_not_kept": "calls left out of the exact sums (too many functions, peers and communicators)",
    "mpi_requests_that_failed": "MPI requests that failed",
    "not_resumed_after_fork": "times sampling did not continue after a fork",
    "calls_without_lines_while_traced": "calls without counted lines (a debugger or coverage was tracing the program)",
    "functions_without_lines_counted": "functions whose lines were not counted (no room)",
    "lines_not_understood": "unreadable lines of the imported profile",
    "clock_violations_left": "messages and collectives between nodes still in the wrong order after clock repair",
    "recording_stopped_early": "times recording stopped before the process ended (see the end of the process)",
}
# Good to know; nothing is missing.
REMARKS = {
    "openmp_locks_held_across_spans": "locks of OpenMP that were held beyond the call that took them (no span)",
    "weights_are_no_time": "call paths weighted by samples, bytes or events (each shown as 1 ns: times are unknown)",
    "calls_without_end": "calls shown with no duration (the imported file has no ends of calls)",
    "messages_checked": "messages between nodes compared with the clocks",
    "collectives_checked": "collectives of several nodes compared with the clocks",
    "clock_violations": "of them in the wrong order by the measured clocks (repaired since)",
    "clock_violations_worst_ns": "ns by which the worst of them was early",
    "kernels_outside_operators": "kernels whose launch lies in no operator of its thread",
    "spans_clipped": "Python functions that cross the edge of a mark or an operator (cut there)",
    "overlapping_spans": "spans that overlap others without nesting (shown in separate lanes)",
    "times_rounded": "times rounded to whole nanoseconds",
    "sizes_rounded": "sizes rounded by the imported file",
    "weights_rounded": "weights of the imported profile rounded to whole numbers",
    "kernels_without_time": "kernels without a time (the imported file has their hardware metrics)",
    "ranks_by_order": "processes whose ranks were chosen by their order (the imported file has no ranks)",
    "processes_joined": "processes not distinguished by the imported file",
    "aggregated_events": "events summed up by the imported file (marks without a time)",
    "clock_unknown": "archives without a clock resolution (nanoseconds are assumed)",
    "tracks_described_late": "tracks of a Perfetto trace that were described after their first event",
    "unknown_fields": "unknown fields of a Perfetto trace",
    "event_details_of_other_kinds": "event details of a Perfetto trace not kept",
    "long_values_not_kept": "long values of an XPlane file not kept",
    "labels_not_kept": "labels of the imported profile not kept",
    "call_arguments_not_kept": "arguments of calls of the imported file not kept",
    "columns_not_kept": "columns of the imported profile not kept",
    "tar_headers_repaired": "wrong checksums in the imported archive (CubeWriter 4.8 writes them; its data are read)",
    "metrics_not_kept": "metrics of the imported profile not kept",
    "threads_folded": "threads of the imported profile shown as one (too many)",
    "frame_addresses_left_out": "addresses of sampled frames left out (their functions have names)",
    "statistics_left_out": "rows of statistics left out (they cannot be divided)",
    "functions_in_circles": "mutually recursive functions (their total is at most the one shown)",
    "functions_of_several_callers": "functions with several callers, shown beside them (and included in their totals)",
    "rows_folded": "event details folded with their iterations (included in sums)",
    "leaves_unmatched": "span ends whose start was not recorded",
    "nvtx_pops_without_push": "NVTX range ends without a start",
    "mpi_polls_that_found_nothing": "MPI polls without a message (no spans)",
    "stepped_aside_for_torch_profiler": "times torch.profiler in the program recorded the operators instead",
    "gpu_buffers_of_others": "buffers of other CUPTI users, not touched",
    "gpu_overhead_ms": "ms of overhead reported by CUPTI",
    "gpu_driver_ms": "ms of overhead in the CUDA driver (compiling, loading kernels, full command buffers)",
    "gpu_jit_ms": "ms of just-in-time compilation of kernels by the driver",
    "gpu_jit_compilations": "just-in-time compilations of kernels missing from the program for this GPU",
    "gpu_page_faults": "groups of GPU page faults on unified memory",
    "gpu_cpu_page_faults": "host page faults on unified memory",
    "own_cpu_ns": "ns of CPU time used by the recorder's thread",
    "hook_cost_ns": "ns of CPU time added to functions by the hooks (estimated)",
    "sampler_cpu_ns": "ns of CPU time used by sampling",
    "thread_lists_not_read": "times the threads of a process could not be read (they changed meanwhile)",
    "samples_not_read": "samples without a call stack (the thread continued while it was read)",
    "sampling_stopped_file_closed": "times sampling ended early (the program closed the sampler's file)",
    "rows_of_unknown_tables": "rows of unknown tables of the imported file (kept as spans and marks)",
    "records_taken": "records of the imported file read",
    "records_left_out": "records of the imported file left out",
    "records_unknown": "records of the imported file of unknown kinds",
    "calls_not_counted": "functions without a call count in the file (each shown as 1)",
}
# What became of the records of an imported file; by kind: a prefix, and its name.
RECORDS_TAKEN, RECORDS_LEFT_OUT, RECORDS_UNKNOWN = "records_taken", "records_left_out", "records_unknown"
LEFT_OUT, UNKNOWN = "left_out: ", "unknown: "
# A column of an imported file that has data: this and its table and name.
NOT_READ = "not_read: "
# Counted when an adapter could not start: `not_recorded_` and its name.
NOT_RECORDED = "not_recorded_"
# How many calls of a function were recorded before it was throttled: this and its name.
THROTTLED = "throttled_after: "
_NAMED = 3


def loss_sentences(counted: Mapping[str, int]) -> list[str]:
    """Return a sentence for each counter of something missing or wrong that is not 0."""
    known = [sentence(what, counted[what]) for what in LOSSES if counted.get(what)]
    adapters = [what for what in sorted(counted) if what.startswith(NOT_RECORDED) and counted[what]]
    hot = sorted((what for what in counted if what.startswith(THROTTLED)), key=lambda what: -counted[what])[:_NAMED]
    return known + [sentence(what, counted[what]) for what in (*hot, *adapters) if counted[what]]


def records_sentence(counted: Mapping[str, int]) -> str:
    """Return what became of the records of imported files; empty if none were counted."""
    taken, left_out, unknown = (counted.get(each, 0) for each in (RECORDS_TAKEN, RECORDS_LEFT_OUT, RECORDS_UNKNOWN))
    total = taken + left_out + unknown
    if not total:
        return ""
    parts = [f"{format_count(total)} record{'' if total == 1 else 's'}"]
    for number, words, prefix in ((left_out, "left out", LEFT_OUT), (unknown, "of unknown kinds", UNKNOWN)):
        if number:
            parts.append(f"{format_count(number)} {words}{_kinds(counted, prefix)}")
    return ", ".join(parts)


def _kinds(counted: Mapping[str, int], prefix: str) -> str:
    """Return the kinds that were counted with a prefix, in brackets; those counted most, if there are many."""
    kinds = [what for what in counted if what.startswith(prefix) and counted[what]]
    names = [what.removeprefix(prefix) for what in sorted(kinds, key=lambda what: (-counted[what], what))]
    more = [f"{len(names) - _NAMED} more"] if len(names) > _NAMED else []
    return f" ({', '.join(names[:_NAMED] + more)})" if names else ""


def sentence(what: str, value: int) -> str:
    """Return a counter of the quality table in words; empty for 0 and for unknown counters."""
    if not value:
        return ""
    if what.startswith(NOT_RECORDED):
        return f"{what.removeprefix(NOT_RECORDED)} not recorded"
    for prefix, fate in ((LEFT_OUT, "left out"), (UNKNOWN, "of an unknown kind")):
        if what.startswith(prefix):
            return f"{format_count(value)} record{'' if value == 1 else 's'} {fate}: {what.removeprefix(prefix)}"
    if what.startswith(NOT_READ):
        return f"column not read: {what.removeprefix(NOT_READ)}"
    if what.startswith(THROTTLED):
        return f"{what.removeprefix(THROTTLED)} throttled after {format_count(value)} calls"
    words = LOSSES.get(what) or REMARKS.get(what)
    return f"{format_count(value)} {words}" if words else ""
