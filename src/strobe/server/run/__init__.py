"""Answers about a whole run: its steps, GPUs, metrics, call tree and critical paths."""
