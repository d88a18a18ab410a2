"""Plain data to text: tables for terminals and pipes, and the summary of a run."""
