"""NVIDIA's own tools and GPUs: the catalogue of metrics, Nsight Compute, peaks."""
