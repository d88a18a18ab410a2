"""Traces made from other traces: cut, anonymised, generated."""
