"""A gate for regressions: exact counts, times of paired runs, histories. `statistics` and `change_points` are pure."""
