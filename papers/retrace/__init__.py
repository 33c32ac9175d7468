"""Paper 5, Retrace: figures and what they compute.

    scores.py     figure 1 on small games; our own: with each agent's best step size
    operators.py  our own: contraction and convergence of the operators

docs/papers/retrace.md discusses what came out.
"""
