"""Bonuses: intrinsic rewards, each a value that both engines take.

A bonus is a frozen dataclass of its settings (`types.Bonus`), for instance
`tdu.TDUncertainty()`. To add one, write a file with such a dataclass, here or anywhere,
and name it in a preset with its β.
"""
