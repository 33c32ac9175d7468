"""Paper 1, temporally-extended ε-greedy exploration: figures and what they compute.

    first_visits.py  figure 1: states visited around a policy that goes straight down
    chain.py         figure 2: laws of durations
    small.py         figure 3a to c: DeepSea, GridWorld and MountainCar
    cartpole.py      figure 3d
    atari.py         figures 4 and 9: Atari-57
    noise.py         figures 7 and 8: noisy transitions
    worlds.py        figure 11: gridworlds with obstacles or traps
    obstacles.py     figures 12 and 13: learning in them
    adversarial.py   figure 14
    r_max.py         figure 15
    cover.py         our own: cover times of a chain (definition 1)
    comparisons.py   panels and claims that they share
    domains.py       the domains with their learners, and the tasks
    runs.py          runs of small learners

docs/papers/ez_greedy.md discusses what came out.
"""
