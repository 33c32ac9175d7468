"""Paper 4, temporal difference uncertainties: docs/papers/tdu.md discusses it."""
