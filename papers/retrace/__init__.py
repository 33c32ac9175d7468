"""Paper 5, Retrace: figures and what they compute.

    scores.py     figure 1: inter-algorithm scores on small games; training
    tuned.py      our own: figure 1 with each agent's best step size, and by λ
    operators.py  our own: contraction and convergence of the operators

docs/papers/retrace.md discusses what came out.
"""
