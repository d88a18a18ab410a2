"""What happened in a stretch of time: sums, profiles, durations, and the spans themselves."""
