"""Bonuses: intrinsic rewards.

A bonus is a frozen dataclass of its settings (`types.Bonus`), for example
`tdu.TDUncertainty()`. It has a half that is computed while acting and stored, one that
the learner computes, or both. To add one, write a file with such a dataclass, here or
anywhere, and use it in a preset with its β.
"""
