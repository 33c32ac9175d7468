"""Paper 2, Never Give Up: figures and what they compute.

    maze.py      figure 2 in the Random Disco Maze, longer, and variants of settings
    mixtures.py  figure 7: bonus scales and discounts of a mixture's policies

docs/papers/never_give_up.md discusses what came out.
"""
