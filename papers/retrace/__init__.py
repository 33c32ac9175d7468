"""Paper 5, Retrace: figures and what they compute.

    scores.py        figure 1: inter-algorithm scores on small games; training
    operators.py     our own: contraction, control, bias and variance of the operators
    measurements.py  what it computes
    online.py        theorem 3: the online algorithm

docs/papers/retrace.md discusses what came out.
"""
