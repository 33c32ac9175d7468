"""Tasks: parts of a large computation, in parallel on Ray, with saved results."""
