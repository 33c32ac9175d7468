"""The engine: ensembles of action values, learning from windows of steps."""
