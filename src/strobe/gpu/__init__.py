"""What GPUs did, who launched it, and what is known of each GPU."""
