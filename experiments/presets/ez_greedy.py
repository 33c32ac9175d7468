"""Paper 1: temporally-extended ε-greedy exploration (Dabney et al., 2021)."""

import dataclasses
from typing import Any

from explorax import exploration
from explorax.agents.bonuses import pseudo_counts
from explorax.agents.targets import off_policy
from explorax.experiments.presets import dqn, ngu, r2d2, rainbow, tdu

_PAPER = "Dabney et al., 2021"
_RAINBOW_DURATION = exploration.ZetaDuration(cap=100)  # Appendix C.
# Appendix C: ε over the first 4 million frames, on top of Rainbow's noise.
_EPSILON_ATARI = exploration.Linear(1.0, 0.01, steps=1_000_000)


def _rainbow_epsilon(config: Any, epsilon: exploration.Setting) -> Any:
  return dataclasses.replace(config, exploration=exploration.EpsilonGreedy(epsilon))


def _rainbow_ez(config: Any, epsilon: exploration.Setting) -> Any:
  return dataclasses.replace(
    config, exploration=exploration.EzGreedy(epsilon, duration=_RAINBOW_DURATION)
  )


def _rainbow_cts(config: Any, beta: float, epsilon: exploration.Setting) -> Any:
  """Appendix C: no noise, no target network, and 5 steps."""
  return dataclasses.replace(
    config,
    noisy_sigma=0.0,
    target_update_period=1,
    n_step=5,
    bonus=pseudo_counts.PseudoCounts(),
    beta=beta,
    exploration=exploration.EpsilonGreedy(epsilon),
  )


# Expected SARSA(λ) is from appendix C and table 3. The paper does not say under which
# policy the expectation is: we use ε-greedy with ε = 0.01.
_SARSA = off_policy.ExpectedSarsaLambda(lambda_=0.7, epsilon=0.01)
_R2D2 = dataclasses.replace(r2d2.SMALL, target=_SARSA)
_R2D2_ATARI = dataclasses.replace(
  r2d2.ATARI,
  target=_SARSA,
  learning_rate=2e-4,
  target_update_period=400,
  # Appendix C evaluates an ε-greedy policy but does not give its ε. This value is from
  # table 6 of Badia et al. (2020), who also build on R2D2.
  evaluation_epsilon=0.01,
)
# In appendix C the bonus is divided by its variance, and the predictor learns from
# whole batches. The paper gives no β, no ε of Adam and no clipping: we use paper 2's.
_RND: dict[str, Any] = {
  "bonus": dataclasses.replace(ngu.RND, normalisation="variance", num_trained=None),
  "beta": 0.3,
}
# In appendix C, RND's networks have the size of DQN's (Mnih et al., 2015).
_RND_ATARI: dict[str, Any] = {
  "bonus": dataclasses.replace(
    ngu.RND_ATARI,
    torso="dqn",
    output_size=128,
    normalisation="variance",
    num_trained=None,
  ),
  "beta": 0.3,
}


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


PRESETS = (
  dqn.preset(
    name="dqn_ez",
    summary="DQN with temporally-extended ε-greedy exploration",
    paper=_PAPER,
    config=dataclasses.replace(
      dqn.BSUITE_DQN, exploration=exploration.EzGreedy(epsilon=0.05)
    ),
    on={
      "atari:": dataclasses.replace(
        dqn.ATARI, exploration=exploration.EzGreedy(epsilon=_EPSILON_ATARI)
      )
    },
  ),
  rainbow.preset(
    name="rainbow_epsilon",
    summary="rainbow with ε-greedy exploration on top of the noise",
    paper=_PAPER,
    config=_rainbow_epsilon(rainbow.SMALL, epsilon=0.05),
    on={"atari:": _rainbow_epsilon(rainbow.ATARI, epsilon=_EPSILON_ATARI)},
  ),
  rainbow.preset(
    name="rainbow_ez",
    summary="rainbow with temporally-extended ε-greedy exploration on top of the noise",
    paper=_PAPER,
    config=_rainbow_ez(rainbow.SMALL, epsilon=0.05),
    on={"atari:": _rainbow_ez(rainbow.ATARI, epsilon=_EPSILON_ATARI)},
  ),
  rainbow.preset(
    name="rainbow_cts",
    summary=(
      "rainbow without noise, with ε-greedy exploration and a bonus of pseudo-counts"
    ),
    paper=_PAPER,
    config=_rainbow_cts(rainbow.SMALL, beta=tdu.NOVELTY_BETA, epsilon=0.05),
    on={"atari:": _rainbow_cts(rainbow.ATARI, beta=0.0005, epsilon=_EPSILON_ATARI)},
  ),
  r2d2.preset(
    name="r2d2_sarsa_lambda",
    summary="R2D2 with expected SARSA(λ)",
    paper=_PAPER,
    config=_R2D2,
    on={"atari:": _R2D2_ATARI},
    atari_profile="rgb",
  ),
  r2d2.preset(
    name="r2d2_ez",
    summary="R2D2 with expected SARSA(λ) and temporally-extended ε-greedy exploration",
    paper=_PAPER,
    config=dataclasses.replace(
      _R2D2, exploration=exploration.EzGreedy(epsilon=0.1, ladder=7.0)
    ),
    on={
      "atari:": dataclasses.replace(
        _R2D2_ATARI, exploration=exploration.EzGreedy(epsilon=0.4, ladder=7.0)
      )
    },
    atari_profile="rgb",
  ),
  r2d2.preset(
    name="r2d2_sarsa_lambda_rnd",
    summary="R2D2 with expected SARSA(λ) and random network distillation",
    paper=_PAPER,
    config=dataclasses.replace(_R2D2, **_RND),
    on={"atari:": dataclasses.replace(_R2D2_ATARI, **_RND_ATARI)},
    atari_profile="rgb",
  ),
  r2d2.preset(
    name="bootstrapped_r2d2",
    summary="R2D2 with eight heads, one followed per episode",
    paper=_PAPER,
    config=_bootstrapped(_R2D2),
    on={"atari:": _bootstrapped(_R2D2_ATARI)},
    atari_profile="rgb",
  ),
)
