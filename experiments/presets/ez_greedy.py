"""Paper 1: temporally-extended ε-greedy exploration (Dabney et al., 2021)."""

import dataclasses
import functools
from typing import Any

from explorax import exploration
from explorax.agents.bonuses import pseudo_counts
from explorax.agents.targets import off_policy
from explorax.experiments.presets import dqn, ngu, r2d2, rainbow, tdu, types

_PAPER = "Dabney et al., 2021"
# Appendix C: ε over the first 4 million frames, on top of Rainbow's noise.
_EPSILON_ATARI = exploration.Linear(1.0, 0.01, steps=1_000_000)
_EPSILON_GREEDY = types.Pair(
  exploration.EpsilonGreedy(0.05), exploration.EpsilonGreedy(_EPSILON_ATARI)
)
_EZ = types.Pair(exploration.EzGreedy(0.05), exploration.EzGreedy(_EPSILON_ATARI))

_RAINBOW = rainbow.RAINBOW.replace(exploration=_EPSILON_GREEDY)
_RAINBOW_EZ = rainbow.RAINBOW.replace(
  exploration=_EZ.replace(duration=exploration.ZetaDuration(cap=100))  # Appendix C.
)
# Appendix C: no noise, no target network, and 5 steps.
_RAINBOW_CTS = _RAINBOW.replace(
  noisy_sigma=0.0,
  target_update_period=1,
  n_step=5,
  bonus=pseudo_counts.PseudoCounts(),
  beta=types.Pair(tdu.NOVELTY_BETA, 0.0005),
)
# Expected SARSA(λ) is from appendix C and table 3. The paper does not say under which
# policy the expectation is: we use ε-greedy with ε = 0.01.
_TARGET = off_policy.ExpectedSarsaLambda(lambda_=0.7, epsilon=0.01)
_R2D2_ATARI = dataclasses.replace(
  r2d2.ATARI,
  learning_rate=2e-4,
  target_update_period=400,
  # Appendix C evaluates an ε-greedy policy but does not give its ε. This value is from
  # table 6 of Badia et al. (2020), who also build on R2D2.
  evaluation_epsilon=0.01,
)
_R2D2 = types.Pair(r2d2.SMALL, _R2D2_ATARI).replace(target=_TARGET)
# In appendix C the predictor learns from whole batches; on Atari, its networks have the
# size of DQN's (Mnih et al., 2015). "Dividing by its variance" is read as dividing by
# the running deviation, as Burda et al. (2018) do. The paper gives no β, no ε of Adam
# and no clipping: we use paper 2's.
_RND = _R2D2.replace(
  bonus=types.Pair(
    dataclasses.replace(ngu.RND, num_trained=None),
    dataclasses.replace(ngu.RND_ATARI, num_trained=None, torso="dqn"),
  ),
  beta=0.3,
)


def _bootstrapped(config: Any) -> Any:
  """Appendix C: eight heads; an actor follows one of them for an episode."""
  return dataclasses.replace(
    config,
    num_members=8,
    mask_prob=0.5,
    mask_per_step=True,
    exploration=dataclasses.replace(config.exploration, of=exploration.Thompson()),
    # Drawing a head at each step is the average of the heads' ε-greedy policies.
    evaluation=exploration.EpsilonGreedy(
      config.evaluation_epsilon, of=exploration.Thompson(period_steps=1)
    ),
    evaluation_epsilon=0.0,  # The rule `evaluation` has its own ε.
  )


def _ez(config: Any) -> Any:
  epsilon = config.exploration.epsilon
  rule = exploration.EzGreedy(epsilon=epsilon, ladder=7.0)
  return dataclasses.replace(config, exploration=rule)


_r2d2_preset = functools.partial(r2d2.preset, paper=_PAPER, atari_profile="rgb")

PRESETS = (
  dqn.preset(
    "dqn_ez",
    "DQN with temporally-extended ε-greedy exploration",
    _PAPER,
    types.Pair(dqn.BSUITE_DQN, dqn.ATARI).replace(exploration=_EZ),
  ),
  dqn.preset(
    "double_dqn_ez",
    "double_dqn with temporally-extended ε-greedy exploration",
    "ours, after " + _PAPER,
    dqn.DOUBLE.replace(exploration=_EZ),
  ),
  rainbow.preset(
    "rainbow_epsilon",
    "rainbow with ε-greedy exploration on top of the noise",
    _PAPER,
    _RAINBOW,
  ),
  rainbow.preset(
    "rainbow_ez",
    "rainbow with temporally-extended ε-greedy exploration on top of the noise",
    _PAPER,
    _RAINBOW_EZ,
  ),
  rainbow.preset(
    "rainbow_cts",
    "rainbow without noise, with ε-greedy exploration and a bonus of pseudo-counts",
    _PAPER,
    _RAINBOW_CTS,
  ),
  _r2d2_preset("r2d2_sarsa_lambda", "R2D2 with expected SARSA(λ)", settings=_R2D2),
  _r2d2_preset(
    "r2d2_ez",
    "R2D2 with expected SARSA(λ) and temporally-extended ε-greedy exploration",
    settings=_R2D2.map(_ez),
  ),
  _r2d2_preset(
    "r2d2_sarsa_lambda_rnd",
    "R2D2 with expected SARSA(λ) and random network distillation",
    settings=_RND,
  ),
  _r2d2_preset(
    "bootstrapped_r2d2",
    "R2D2 with eight heads, one followed per episode",
    settings=_R2D2.map(_bootstrapped),
  ),
)
