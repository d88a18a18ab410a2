"""The work of GPUs, its launches, and the properties of each GPU."""
