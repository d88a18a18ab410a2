"""Samples of Python processes that run already: what `strobe sample` does while it runs."""
