"""Files that PyTorch writes, other than traces of its profiler."""
