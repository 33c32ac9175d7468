"""Paper 4, temporal difference uncertainties: figures and what they compute.

    deep_sea.py     figure 1: which agents solve Deep Sea
    binary_tree.py  figures 4 and 5: TDU in trees of growing depth
    atari.py        figure 3: R2D2 on Atari
    scaling.py      our own: episodes to solve Deep Sea against its size
    episodes.py     what these measure, draw and claim of episodes to solve
    runs.py         training until a problem is solved

docs/papers/tdu.md discusses what came out; docs/figures/figures.md has all findings.
"""
