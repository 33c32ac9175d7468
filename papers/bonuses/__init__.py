"""The bonuses that the field uses, on one agent: our own figures.

    navix_tasks.py  MiniGrid's tasks in JAX
    minigrid.py     which bonuses solve MiniGrid

docs/guides/bonuses.md says how they are tuned and tested.
"""
