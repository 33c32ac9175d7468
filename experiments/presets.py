"""Every agent by name: an engine's config, with the paper that it comes from."""

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

from explorax import exploration
from explorax.agents import bonuses, pseudo_counts, types
from explorax.agents.dqn import agent as dqn_agent
from explorax.agents.dqn import config as dqn_config
from explorax.agents.r2d2 import agent as r2d2_agent
from explorax.agents.successor import agent as successor_agent
from explorax.agents.successor import config as successor_config
from explorax.experiments import sequence_presets


class Preset(NamedTuple):
  """A named agent.

  Attributes:
    name: of `--agent`.
    summary: what it is, in a line.
    paper: where it comes from.
    config: its settings.
    make_agent: (config, the environment's spec) → the agent.
    special: (prefix of an environment's name, its settings there), where they are
      others.
    atari_profile: how its paper shows Atari's frames, for names that do not say.
  """

  name: str
  summary: str
  paper: str
  config: Any
  make_agent: Callable[[Any, types.EnvironmentSpec], types.Agent]
  special: tuple[tuple[str, Any], ...] = ()
  atari_profile: str = "dqn"

  def environment_for(self, environment_name: str) -> str:
    """The name with its profile, `atari:Game/profile`, if it is a bare `atari:Game`."""
    if environment_name.startswith("atari:") and "/" not in environment_name:
      return f"{environment_name}/{self.atari_profile}"
    return environment_name

  def config_for(self, environment_name: str) -> Any:
    """The settings for `kind:name`."""
    for prefix, config in self.special:
      if environment_name.startswith(prefix):
        return config
    return self.config


# Paper 3 (Chen et al., 2017): ten heads on one torso, double Q-learning. It has only
# Atari settings, which are for its Atari agents; on small problems, bsuite's.
_UCB_ENSEMBLE = dqn_config.DQNConfig(
  num_members=10, shared_torso=True, target="double_q"
)
# Paper 4 (Flennerhag et al., 2020), appendix D: twenty members apart, priors of scale 3
# (bsuite's own agent has 5), β = 1 (the best of those tried in its ablations).
_BOOTSTRAPPED = dqn_config.DQNConfig(
  num_members=20, prior_scale=3.0, exploration=exploration.Thompson()
)
_TDU = dataclasses.replace(
  _BOOTSTRAPPED,
  num_members=10,
  num_explorers=10,
  bonus=bonuses.TDUncertainty(),
  beta=1.0,
)
_DQN = dqn_config.DQNConfig()
# Rainbow's parts (Hessel et al., 2018) on bsuite's settings for small problems. Atoms
# within ±10 suit returns of that size.
_RAINBOW = dqn_config.DQNConfig(
  hidden_sizes=(50,),
  head_size=50,
  duelling=True,
  noisy_sigma=0.5,
  num_atoms=51,
  exploration=exploration.Greedy(),
  target="categorical_double_q",
  n_step=3,
  priority_exponent=0.5,
  importance_exponent=0.4,
)
# β of the RND and count baselines: of those that paper 4 swept (Table 3, whose best
# values its text does not have). In our tuning it is the best for counts, and for RND
# not to be told from the best (docs/bsuite).
_NOVELTY_BETA = 0.1

# Paper 3, Table 1, on Atari, the unit of its schedules being one action: learning
# begins at action 50 000, and an update is made every fourth, so that the rate falls
# from 10⁶ to 5 · 10⁶ actions. Rewards and TD errors are clipped as in DQN (Mnih et al.,
# 2015).
_ATARI = dqn_config.DQNConfig(
  hidden_sizes=(512,),
  exploration=exploration.StagedEpsilonGreedy(
    epsilons=(1.0, 0.1, 0.01), steps=(1_000_000, 5_000_000)
  ),
  random_steps=50_000,
  target="double_q",
  max_abs_reward=1.0,
  max_abs_td=1.0,
  learning_rate=1e-4,
  final_learning_rate=5e-5,
  learning_rate_updates=(237_500, 1_237_500),
  adam_b2=0.99,
  adam_eps=1e-4,
  target_update_period=10_000,
  replay_capacity=1_000_000,
  min_replay_size=50_000,
  batch_size=32,
  updates_per_step=0.25,
)
_DQN_ATARI = dataclasses.replace(_ATARI, target="q_learning")
# Ten heads of 512 hidden units each on shared convolutions (Osband et al., 2016, whose
# network paper 3 takes).
_ENSEMBLE_ATARI = dataclasses.replace(
  _ATARI, num_members=10, hidden_sizes=(), head_size=512, shared_torso=True
)
# Hessel et al. (2018), table 1, in actions of four frames and in updates, of which
# there is one for every fourth action; the importance exponent rises over 200 million
# frames.
_RAINBOW_ATARI = dataclasses.replace(
  _RAINBOW,
  hidden_sizes=(),
  head_size=512,
  evaluation_epsilon=0.001,  # Paper 1, appendix C.
  max_abs_reward=1.0,
  learning_rate=6.25e-5,
  adam_eps=1.5e-4,
  target_update_period=2_000,
  replay_capacity=1_000_000,
  min_replay_size=20_000,
  batch_size=32,
  updates_per_step=0.25,
  final_importance_exponent=1.0,
  importance_updates=12_495_000,
)
# Paper 1, appendix C: ε over the first 4 million frames, on top of the noise.
_EPSILON_ATARI: dict[str, Any] = {
  "epsilon": 1.0,
  "final_epsilon": 0.01,
  "decay_steps": 1_000_000,
}
_RAINBOW_CAP = 100  # Agent steps, of a duration (paper 1, appendix C).


def _with_pseudo_counts(config: Any, beta: float) -> Any:
  """Rainbow-CTS of paper 1, appendix C: no noise, no target network, and 5 steps."""
  return dataclasses.replace(
    config,
    noisy_sigma=0.0,
    target_update_period=1,
    n_step=5,
    bonus=pseudo_counts.PseudoCounts(),
    beta=beta,
  )


def _explore(config: Any, rule: exploration.Rule) -> Any:
  return dataclasses.replace(config, exploration=rule)


_BSUITE = "Osband et al., 2020 (bsuite's baseline)"
_RAINBOW_PAPER = "Hessel et al., 2018"
_PAPER_1 = "Dabney et al., 2021"
_PAPER_3 = "Chen et al., 2017"
_PAPER_4 = "Flennerhag et al., 2020"

_DQN_PRESETS = (
  ("dqn", "DQN with ε-greedy exploration", _BSUITE, _DQN),
  (
    "double_dqn",
    "double DQN with ε-greedy exploration",
    "van Hasselt et al., 2016",
    dataclasses.replace(_DQN, target="double_q"),
  ),
  (
    "bootstrapped_dqn",
    "an ensemble with random priors, one member followed per episode",
    "Osband et al., 2018",
    _BOOTSTRAPPED,
  ),
  (
    "bootstrapped_dqn_no_prior",
    "an ensemble without priors, one member followed per episode",
    "Osband et al., 2016",
    dataclasses.replace(_BOOTSTRAPPED, prior_scale=0.0),
  ),
  (
    "ensemble_voting",
    "the majority vote of ten heads on one torso",
    _PAPER_3 + ", algorithm 1",
    dataclasses.replace(_UCB_ENSEMBLE, exploration=exploration.MajorityVote()),
  ),
  (
    "ucb",
    "the upper confidence bound over ten heads on one torso",
    _PAPER_3 + ", algorithm 2",
    dataclasses.replace(_UCB_ENSEMBLE, exploration=exploration.Ucb(scale=0.1)),
  ),
  (
    "ucb_infogain",
    "ucb, with the information gain over the heads as a bonus",
    _PAPER_3 + ", algorithm 3",
    dataclasses.replace(
      _UCB_ENSEMBLE,
      exploration=exploration.Ucb(scale=0.1),
      bonus=bonuses.InfoGain(),
      beta=1.0,
    ),
  ),
  (
    "tdu",
    "ten exploiters, and ten explorers rewarded for the exploiters' uncertainty",
    _PAPER_4,
    _TDU,
  ),
  (
    "tdu_bandit",
    "tdu, its members chosen by UCB1",
    _PAPER_4 + ", appendix D.2",
    dataclasses.replace(_TDU, exploration=exploration.Ucb1(scale=8.0)),
  ),
  (
    "qu",
    "tdu with the deviation of the values as the bonus",
    _PAPER_4 + ", appendix D.2",
    dataclasses.replace(_TDU, bonus=bonuses.QUncertainty()),
  ),
  (
    "q_ucb",
    "an ensemble that acts by argmax Q + β σ(Q)",
    _PAPER_4 + ", appendix D.2",
    dataclasses.replace(_BOOTSTRAPPED, exploration=exploration.QUcb(scale=1.0)),
  ),
  (
    "dqn_ez",
    "DQN with temporally-extended ε-greedy exploration",
    _PAPER_1,
    dataclasses.replace(_DQN, exploration=exploration.EzGreedy(epsilon=0.05)),
  ),
  (
    "dqn_rnd",
    "DQN with random network distillation",
    "Burda et al., 2018, as in " + _PAPER_4,
    dataclasses.replace(_DQN, bonus=bonuses.RND(), beta=_NOVELTY_BETA),
  ),
  (
    "dqn_counts",
    "DQN with a count bonus",
    "Bellemare et al., 2016, as in " + _PAPER_4,
    dataclasses.replace(_DQN, bonus=bonuses.Counts(), beta=_NOVELTY_BETA),
  ),
  (
    "qex",
    "DQN, and an explorer that learns from the size of its TD error alone",
    "Simmons-Edler et al., 2019, as in " + _PAPER_4,
    dataclasses.replace(
      _DQN,
      num_explorers=1,
      explorers_see_reward=False,
      bonus=bonuses.AbsoluteTDError(),
      beta=1.0,  # The TD error as it is; Table 3's best in our tuning (docs/bsuite).
      exploration=exploration.Thompson(epsilon=0.05),  # ε as in bsuite's DQN.
    ),
  ),
  (
    "noisy_dqn",
    "DQN with noise in all its linear layers",
    "Fortunato et al., 2018, as in " + _PAPER_4,
    dataclasses.replace(
      _DQN,
      # Fortunato et al., section 3.2; no worse than those of paper 4's Table 3 in our
      # tuning (docs/bsuite).
      noisy_sigma=0.5,
      noisy_torso=True,
      exploration=exploration.Greedy(),
    ),
  ),
  (
    "dqn_atari",
    "DQN with ε-greedy exploration, its settings those for Atari everywhere",
    _PAPER_3 + ", Table 1",
    _DQN_ATARI,
  ),
  (
    "rainbow",
    "double, duelling, distributional, noisy, prioritised, 3-step DQN",
    _RAINBOW_PAPER,
    _RAINBOW,
  ),
  (
    "rainbow_epsilon",
    "rainbow with ε-greedy exploration on top of the noise",
    _PAPER_1,
    _explore(_RAINBOW, exploration.EpsilonGreedy(epsilon=0.05)),
  ),
  (
    "rainbow_ez",
    "rainbow with temporally-extended ε-greedy exploration on top of the noise",
    _PAPER_1,
    _explore(_RAINBOW, exploration.EzGreedy(epsilon=0.05, cap=_RAINBOW_CAP)),
  ),
  (
    "rainbow_cts",
    "rainbow without noise, with ε-greedy exploration and a bonus of pseudo-counts",
    _PAPER_1,
    _explore(
      _with_pseudo_counts(_RAINBOW, beta=_NOVELTY_BETA),
      exploration.EpsilonGreedy(epsilon=0.05),
    ),
  ),
)


def _heads_on_atari(config: dqn_config.DQNConfig) -> dqn_config.DQNConfig:
  """An ensemble's own settings, its members heads on shared convolutions (ours)."""
  own = (
    "num_members",
    "num_explorers",
    "explorers_see_reward",
    "prior_scale",
    "bonus",
    "beta",
    "exploration",
  )
  return dataclasses.replace(
    _ENSEMBLE_ATARI, **{name: getattr(config, name) for name in own}
  )


# Settings on Atari. Those of paper 3's agents, of Rainbow's and of DQN are the papers';
# the others are ours, since their papers have no such agent on Atari.
_ON_ATARI = {
  "dqn": _DQN_ATARI,
  "double_dqn": _ATARI,
  "bootstrapped_dqn": _explore(
    dataclasses.replace(_ENSEMBLE_ATARI, prior_scale=3.0), exploration.Thompson()
  ),
  "bootstrapped_dqn_no_prior": _explore(_ENSEMBLE_ATARI, exploration.Thompson()),
  "ensemble_voting": _explore(_ENSEMBLE_ATARI, exploration.MajorityVote()),
  "ucb": _explore(_ENSEMBLE_ATARI, exploration.Ucb(scale=0.1)),
  "ucb_infogain": dataclasses.replace(
    _ENSEMBLE_ATARI,
    exploration=exploration.Ucb(scale=0.1),
    bonus=bonuses.InfoGain(),
    beta=1.0,
  ),
  **{
    name: _heads_on_atari(config)
    for name, _, _, config in _DQN_PRESETS
    if name in ("tdu", "tdu_bandit", "qu", "q_ucb", "qex")
  },
  "dqn_ez": _explore(_DQN_ATARI, exploration.EzGreedy(**_EPSILON_ATARI)),
  # Paper 1's networks of R2D2+RND: convolutions and one linear layer.
  "dqn_rnd": dataclasses.replace(
    _DQN_ATARI,
    bonus=bonuses.RND(hidden_sizes=(), output_size=128, learning_rate=5e-4),
    beta=_NOVELTY_BETA,
  ),
  "dqn_counts": dataclasses.replace(
    _DQN_ATARI, bonus=bonuses.Counts(), beta=_NOVELTY_BETA
  ),
  "noisy_dqn": dataclasses.replace(
    _DQN_ATARI,
    noisy_sigma=0.5,
    noisy_torso=True,
    exploration=exploration.Greedy(),
  ),
  "rainbow": _RAINBOW_ATARI,
  "rainbow_epsilon": _explore(
    _RAINBOW_ATARI, exploration.EpsilonGreedy(**_EPSILON_ATARI)
  ),
  "rainbow_ez": _explore(
    _RAINBOW_ATARI, exploration.EzGreedy(**_EPSILON_ATARI, cap=_RAINBOW_CAP)
  ),
  "rainbow_cts": _explore(
    _with_pseudo_counts(_RAINBOW_ATARI, beta=0.0005),
    exploration.EpsilonGreedy(**_EPSILON_ATARI),
  ),
}


def _make_presets() -> dict[str, Preset]:
  presets = [
    Preset(
      name,
      summary,
      paper,
      config,
      dqn_agent.make_agent,
      (("atari:", _ON_ATARI[name]),) if name in _ON_ATARI else (),
    )
    for name, summary, paper, config in _DQN_PRESETS
  ]
  presets.append(
    Preset(
      "successor_uncertainties",
      "a posterior of the reward's weights, drawn from for each episode",
      "Janz et al., 2019, as in " + _PAPER_4,
      successor_config.SuccessorConfig(),
      successor_agent.make_agent,
    )
  )
  presets += [
    Preset(
      row.name,
      row.summary,
      row.paper,
      row.config,
      r2d2_agent.make_agent,
      row.special,
      row.atari_profile,
    )
    for row in sequence_presets.ROWS
  ]
  return {preset.name: preset for preset in presets}


PRESETS = _make_presets()
