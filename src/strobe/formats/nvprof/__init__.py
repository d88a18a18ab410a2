"""Files of nvprof: databases, and printed output."""
