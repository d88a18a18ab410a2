"""Damaged traces: what is left of them is read, and what is missing is stated."""
