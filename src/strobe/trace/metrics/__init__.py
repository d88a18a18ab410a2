"""Values over time: metrics of processes, and readings of GPUs."""
