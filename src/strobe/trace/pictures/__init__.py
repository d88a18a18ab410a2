"""Pictures of a run at the cost of their pixels, and which locations of several ranks belong in one row."""
