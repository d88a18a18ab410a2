"""One recorded run as it lies on disk: its folder, its processes, what ids mean, spans, side tables, pictures."""
