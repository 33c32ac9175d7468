"""The bonuses that the field uses, on one agent: our own figures.

    navix_tasks.py  MiniGrid's tasks in JAX
    minigrid.py     which bonuses solve MiniGrid's tasks, and the tuning of their settings

docs/guides/bonuses.md discusses what came out; docs/figures/figures.md has all findings.
"""
