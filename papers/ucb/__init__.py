"""Paper 3, exploration by Q-ensembles: figures and what they compute.

    games.py    figures 1, 3 and 5 on small games, and table 4
    small.py    our own: the same agents on Deep Sea and Breakout; training
    parts.py    our own: which parts of an ensemble explore Deep Sea

docs/papers/ucb_ensembles.md discusses what came out.
"""
