"""How a report of Nsight Compute begins."""

MAGIC = b"NVR\0"
