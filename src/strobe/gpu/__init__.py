"""NVIDIA's own tools and libraries, found and asked at run time: nothing of CUDA is needed to build or install."""
