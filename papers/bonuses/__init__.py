"""The bonuses that the field uses, on one agent: our own figures.

    navix_tasks.py  MiniGrid's tasks in JAX
    minigrid.py     which bonuses solve MiniGrid
    ppo.py          PPO of Stable-Baselines3 with E3B around its environments

docs/guides/bonuses.md says how they are tuned and tested.
"""
