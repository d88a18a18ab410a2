"""Questions about operators."""
