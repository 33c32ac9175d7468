"""Paper 4, temporal difference uncertainties: figures and what they compute.

    deep_sea.py     figure 1: which agents solve Deep Sea; our own, with more seeds
    binary_tree.py  figures 4 and 5: TDU in trees of growing depth
    scaling.py      our own: episodes to solve Deep Sea against its size
    problems.py     training until a problem is solved

docs/papers/tdu.md discusses what came out.
"""
