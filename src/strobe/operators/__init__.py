"""What operators cost, and how far they are from the peak of their GPU."""
