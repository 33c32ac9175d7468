"""Paper 3, exploration by Q-ensembles: figures and what they compute.

    small.py    our own: the same agents on Deep Sea and Breakout; training
    parts.py    our own: which parts of an ensemble explore Deep Sea

docs/papers/ucb_ensembles.md discusses what came out.
"""
