"""Questions about the program as a whole."""
