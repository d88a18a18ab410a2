"""The critical path of a step over threads, GPUs and ranks."""
