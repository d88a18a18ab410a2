"""Questions about GPUs."""
