"""What happened in a time range: sums, profiles, durations, and the spans themselves."""
