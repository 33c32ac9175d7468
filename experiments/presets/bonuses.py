"""DQN with the intrinsic rewards that the field compares with.

Their papers have other agents (IMPALA, A2C, PPO, A3C), so the agent is ours:
`double_dqn` with one more reward. On Atari, bonuses have the sizes and β the
coefficient of their authors' code. On small problems both are ours: sizes are those of
our networks, and β is one with which the agent solves Deep Sea (N = 10, one seed).
"""

import dataclasses
from typing import Any

from explorax.agents.bonuses import (
  disagreement,
  dynamics,
  e3b,
  icm,
  novel_d,
  re3,
  ride,
  rnd,
  sim_hash,
)
from explorax.agents.bonuses import types as bonus_types
from explorax.experiments.presets import dqn, types

# For small problems: the units of the agent's first layers and few features.
_SMALL: dict[str, Any] = {"hidden_sizes": (50,), "embedding_size": 32}
_RND = rnd.RND(
  hidden_sizes=(), output_size=128, normalisation="none", end="destination"
)


def _small_model(model: dynamics.Dynamics) -> dynamics.Dynamics:
  """At the agent's learning rate, as ten times fewer steps are made."""
  return dataclasses.replace(model, **_SMALL, hidden_size=50, learning_rate=1e-3)


def _preset(
  name: str,
  summary: str,
  paper: str,
  betas: tuple[float, float],
  small: bonus_types.Bonus,
  atari: bonus_types.Bonus,
) -> types.Preset:
  """An agent of two bonuses, and their two β's."""
  bonus, beta = types.Pair(small, atari), types.Pair(*betas)
  settings = dqn.DOUBLE.replace(bonus=bonus, beta=beta)
  return dqn.preset(name, summary, "ours, after " + paper, settings)


PRESETS = (
  _preset(
    "dqn_icm",
    "double DQN with the error of a forward model of learnt embeddings",
    "Pathak et al., 2017 (ICM)",
    (1.0, 0.01),
    icm.ICM(_small_model(icm.ICM().model)),
    icm.ICM(),
  ),
  _preset(
    "dqn_disagreement",
    "double DQN with the disagreement of forward models of random features",
    "Pathak et al., 2019",
    (0.1, 1.0),  # The code has 1, without extrinsic reward.
    disagreement.Disagreement(**_SMALL, hidden_size=50, learning_rate=1e-3),
    disagreement.Disagreement(),
  ),
  _preset(
    "dqn_ride",
    "double DQN with the impact of actions, over the root of visits in the episode",
    "Raileanu and Rocktäschel, 2020 (RIDE)",
    (0.1, 0.1),
    ride.RIDE(_small_model(ride.RIDE().model)),
    ride.RIDE(),
  ),
  _preset(
    "dqn_novel_d",
    "double DQN with the rise of RND's novelty, on first visits in the episode",
    "Zhang et al., 2021 (NovelD)",
    (0.3, 0.05),
    novel_d.NovelD(learning_rate=1e-3),
    novel_d.NovelD(hidden_sizes=()),
  ),
  _preset(
    "dqn_e3b",
    "double DQN with the elliptical episodic bonus",
    "Henaff et al., 2022 (E3B)",
    (0.1, 1.0),
    e3b.E3B(_small_model(e3b.E3B().model)),
    e3b.E3B(),
  ),
  _preset(
    "dqn_e3b_rnd",
    "double DQN with the elliptical episodic bonus times RND",
    "Henaff et al., 2023",
    (0.1, 1.0),
    e3b.E3B(
      _small_model(e3b.E3B().model),
      lifelong=dataclasses.replace(_RND, hidden_sizes=(50, 50)),
    ),
    e3b.E3B(lifelong=dataclasses.replace(_RND, learning_rate=1e-4)),
  ),
  _preset(
    "dqn_re3",
    "double DQN with the distance to neighbours in random features",
    "Seo et al., 2021 (RE3)",
    (0.05, 0.005),
    re3.RE3(),
    re3.RE3(),
  ),
  _preset(
    "dqn_simhash",
    "double DQN with counts of hash codes",
    "Tang et al., 2017 (#Exploration)",
    (0.1, 0.1),  # Both ours, as of `dqn_counts`.
    sim_hash.SimHash(),
    sim_hash.SimHash(),
  ),
)
