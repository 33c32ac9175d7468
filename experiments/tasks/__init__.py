"""Tasks: parts of a large computation, side by side on Ray, whose results are kept."""
