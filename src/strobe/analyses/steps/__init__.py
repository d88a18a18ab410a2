"""Questions about steps and loops."""
