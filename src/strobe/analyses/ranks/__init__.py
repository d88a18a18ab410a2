"""Questions about ranks and what they wait for."""
