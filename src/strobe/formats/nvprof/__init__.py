"""What nvprof leaves: databases, and what it prints."""
