"""Paper 3, exploration by Q-ensembles: docs/papers/ucb_ensembles.md discusses it."""
