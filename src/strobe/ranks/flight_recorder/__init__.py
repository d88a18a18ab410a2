"""Dumps of PyTorch's flight recorder: what ranks had called, and what of it was not complete."""
