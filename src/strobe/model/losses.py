"""What the counters of the quality table mean when they are not zero: something is missing from the trace."""

from __future__ import annotations

# Counter, and the words after its number. `records_lost` and the like are counted by the core, the rest by adapters.
LOSSES = {
    "records_lost": "records lost (buffers were full)",
    "bytes_lost": "bytes of damaged blocks skipped",
    "paths_folded": "call paths folded (too many different ones)",
    "regions_folded": "regions folded (too many different names)",
    "statistics_folded": "executions counted without their call path (too many different ones)",
    "mpi_call_paths_folded": "MPI calls recorded without their call path (too many different ones)",
    "itt_names_folded": "ITT names folded (too many different ones)",
    "deep_recursion_not_recorded": "recursions too deep for the C stack recorded in part",
    "threads_without_torch_operators": "threads older than torch without operators",
    "nvtx_start_end_ranges_not_recorded": "NVTX start/end ranges not recorded",
    "nvtx_ranges_too_deep": "NVTX ranges nested too deeply to be recorded",
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
    "recording_stopped_early": "process stopped recording early (it said why on stderr)",
}
# Counted when an adapter could not start: `not_recorded_` and its name.
NOT_RECORDED = "not_recorded_"
