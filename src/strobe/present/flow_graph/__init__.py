"""The folded flow graph as a picture: SVG and DOT."""
