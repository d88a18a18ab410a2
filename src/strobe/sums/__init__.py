"""Sums of spans by call path, group or line, and attributes of single spans."""
