"""The bonuses that the field uses, on one agent: our own figures.

    navix_tasks.py  MiniGrid's tasks in JAX
    minigrid.py     which bonuses solve MiniGrid, and the tuning of their scales

docs/guides/bonuses.md has what came out; docs/figures/figures.md has all findings.
"""
