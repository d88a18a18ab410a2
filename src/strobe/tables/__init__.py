"""The one form of every answer, and the query engine."""
