"""Paper 5: Retrace and its relatives (Munos et al., 2016)."""

import dataclasses
import functools
from typing import Any

from explorax import exploration
from explorax.agents.targets import greedy, off_policy, one_step
from explorax.experiments.presets import ngu, r2d2, types

_PAPER = "Munos et al., 2016"

# The paper's agents have DQN's network, without recurrence. The policy of their targets
# is the current exploration policy, which is ε-greedy in the online network; the values
# are those of the target network. The paper has sixteen threads with a replay each and
# shared RMSProp; here there are one actor, one replay and one optimiser.
_NO_MEMORY: dict[str, Any] = {
  "lstm_size": 0,
  "head_size": 0,
  "duelling": False,
  "sequence_length": 16,
  "sequence_period": 16,
  "burn_in": 0,
  "transform_eps": None,
  "priority_exponent": 0.0,
  "priority_eta": None,
  "importance_exponent": 0.0,
  "max_abs_reward": 1.0,
  "max_abs_td": 1.0,
}


def _to_zero(rate: float) -> exploration.Linear:
  return exploration.Linear(rate, 0.0, steps=4_687_500)  # Updates in 3 · 10⁸ frames.


_SMALL = dataclasses.replace(
  r2d2.SMALL,
  **_NO_MEMORY,
  loss_mean_over="transitions",
  batch_size=8,
  exploration=exploration.EpsilonGreedy(epsilon=0.1),
)
_ATARI = dataclasses.replace(
  r2d2.ATARI,
  **_NO_MEMORY,
  # "Scaled (divided by) the sequence length". Nothing else is divided: the step sizes
  # and regularisations are tuned for sums over a minibatch.
  loss_mean_over="time",
  exploration=exploration.EpsilonGreedy(exploration.Alternating()),
  evaluation_epsilon=0.001,  # From van Hasselt et al. (2016); this paper gives none.
  discount=0.99,  # As DQN.
  optimizer="rmsprop",
  learning_rate=_to_zero(9.12e-5),
  optimizer_eps=3.68e-5,
  max_gradient_norm=None,
  batch_size=4,
  replay_capacity=1_000_000,  # Sixteen replays of 62 500.
  min_replay_size=50_000,
  updates_per_step=1 / 16,
  target_update_period=2500,
  actor_update_period=4,
)

_DQN = types.Pair(_SMALL, _ATARI)
_preset = functools.partial(
  r2d2.preset, paper=_PAPER, atari_profile="dqn,life_loss=true"
)


def _follows(target: type[off_policy.OffPolicy], lambda_: float = 1.0) -> Any:
  """A target of the policy that explores now."""
  return target(lambda_=lambda_, epsilon=None, double=True)


PRESETS = (
  # Retrace on R2D2, as in paper 2.
  r2d2.preset(
    "r2d2_tree_backup",
    "R2D2 with tree-backup(λ)",
    _PAPER,
    ngu.SETTINGS.replace(target=off_policy.TreeBackup(lambda_=0.95, epsilon=0.01)),
  ),
  r2d2.preset(
    "r2d2_harutyunyan",
    "R2D2 with Harutyunyan's Q(λ)",
    _PAPER,
    ngu.SETTINGS.replace(target=off_policy.Harutyunyan(lambda_=0.5, epsilon=0.01)),
  ),
  _preset(
    "retrace_dqn",
    "DQN on sequences, with Retrace(λ)",
    settings=_DQN.replace(target=_follows(off_policy.Retrace)),
  ),
  _preset(
    "tree_backup_dqn",
    "DQN on sequences, with tree-backup(λ)",
    settings=_DQN.replace(target=_follows(off_policy.TreeBackup)),
  ),
  _preset(
    "harutyunyan_dqn",
    "DQN on sequences, with Harutyunyan's Q(λ)",
    settings=_DQN.replace(target=_follows(off_policy.Harutyunyan, 0.5)),
  ),
  # The control: one-step Q-learning on minibatches of 64 transitions; on small problems
  # they are in the same sequences as those of the others. We read "clamped into [−1, 1]
  # prior to gradient calculation" as clamping the errors, as in DQN: clamped values
  # with γ = 0.99 could not distinguish one reward from two.
  _preset(
    "one_step_dqn",
    "paper 5's control: one-step Q-learning",
    settings=types.Pair(
      dataclasses.replace(_SMALL, target=greedy.NStep(n=1, double=False)),
      dataclasses.replace(
        _ATARI,
        target=one_step.QLearning(),
        sequence_length=1,
        sequence_period=1,
        batch_size=64,
        loss_mean_over="nothing",
        learning_rate=_to_zero(4.39e-5),
        optimizer_eps=1e-3,
      ),
    ),
  ),
)
