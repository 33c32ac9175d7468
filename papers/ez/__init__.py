"""Paper 1, temporally-extended ε-greedy exploration: its figures.

    runs.py         its domains, and what is computed in them
    comparisons.py  grids, panels and claims of ε-greedy and εz-greedy
    small.py        figures 3, 14 and 15
    sweeps.py       figures 2, 7, 8, 12 and 13
    visits.py       figure 1, and cover times
    worlds.py       figure 11

docs/papers/ez_greedy.md discusses what came out.
"""
