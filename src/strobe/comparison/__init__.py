"""Two sides, step by step: trees of what a step does, their alignment, and the lines that explain the difference."""
