"""Targets: what a learner regresses to.

A target is a frozen dataclass of its parameters (`types.Target`), for instance
`one_step.DoubleQ()` or `off_policy.Retrace(lambda_=0.95)`. To add one, write a file
with such a dataclass, here or anywhere, and name it in a preset.
"""
