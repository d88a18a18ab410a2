"""Every route with its parameters, bounds and answer, and what follows from their descriptions."""
