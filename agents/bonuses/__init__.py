"""Bonuses: intrinsic rewards.

A bonus is a frozen dataclass of its settings (`types.Bonus`), for example
`tdu.TDUncertainty()`. To add one, write a file with such a dataclass, here or anywhere,
and use it in a preset with its β.
"""
