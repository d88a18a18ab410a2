"""Clocks of several nodes and ranks, brought onto one axis."""
