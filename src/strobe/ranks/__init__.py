"""What ranks and GPUs send each other, and who waits for whom."""
