"""What repeats in a trace: loop levels, steps, their classes and their parts. Functions on arrays."""
