"""Trace folders made from other traces: cut, anonymised, generated."""
