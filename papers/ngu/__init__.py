"""Paper 2, Never Give Up: figures and what they compute.

    maze.py      figure 2 in the Random Disco Maze and variants of settings; training
    mixtures.py  figure 7: bonus scales and discounts of a mixture's policies
    atari.py     figures 3 to 5 and table 3: Atari

docs/papers/never_give_up.md discusses what came out.
"""
