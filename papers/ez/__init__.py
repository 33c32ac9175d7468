"""Paper 1, temporally-extended ε-greedy exploration: its figures.

`runs.py` has the domains and what is computed in them, `comparisons.py` the panels and
claims that figures share, each other module a figure or two. docs/papers/ez_greedy.md
discusses what came out.
"""
