"""Answers to questions about GPUs."""
