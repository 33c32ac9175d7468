"""What both engines ask of an ensemble, its bonus and its target."""

import math
from typing import Any

import numpy as np

from explorax import exploration


def check_ensemble(config: Any) -> None:
  """Refuses members, priors, masks and bonuses that cannot be.

  Args:
    config: with `num_members`, `num_explorers`, `prior_scale`, `mask_prob`, `bonus` and
      `beta`.

  Raises:
    ValueError: with the field, its value, and what to do.
  """
  if config.num_members < 1:
    raise ValueError(
      f"num_members is {config.num_members}; an ensemble needs at least one member (K "
      "= 1 is a plain agent)."
    )
  if config.num_explorers < 0:
    raise ValueError(f"num_explorers is {config.num_explorers}; use 0 for none.")
  if not 0 <= config.prior_scale < math.inf:
    raise ValueError(
      f"prior_scale is {config.prior_scale}; it is finite and not negative (0: no "
      "priors)."
    )
  if not 0 < config.mask_prob <= 1:
    raise ValueError(
      f"mask_prob is {config.mask_prob}; members learn with a probability in (0, 1]."
    )
  _check_bonus(config)


def _check_bonus(config: Any) -> None:
  if not 0 <= config.beta < math.inf:
    raise ValueError(
      f"beta is {config.beta}; a bonus's scale is finite and not negative (0 turns it "
      "off)."
    )
  if config.bonus is not None:
    if config.num_members < config.bonus.min_members:
      raise ValueError(
        f"num_members is {config.num_members}, but {type(config.bonus).__name__} needs "
        f"at least {config.bonus.min_members}; use more members, or another bonus."
      )
    return
  if config.beta:
    raise ValueError(
      f"beta is {config.beta}, but there is no bonus to scale; set one, or leave beta "
      "at 0."
    )
  if config.num_explorers:
    raise ValueError(
      f"num_explorers is {config.num_explorers}, but there is no bonus for them to "
      "learn from; set one, or count them in num_members."
    )


def check_target(config: Any) -> None:
  """Refuses a target whose policy is that of an exploration without a single ε.

  Args:
    config: with `target` and `exploration`.

  Raises:
    ValueError: with the fields, their values, and what to do.
  """
  rule = config.exploration
  has_one_epsilon = (
    isinstance(rule, exploration.EpsilonGreedy)
    and isinstance(rule.of, exploration.Greedy)
    and not rule.ladder
  )
  if config.target.follows_exploration and not has_one_epsilon:
    raise ValueError(
      f"target.epsilon is None, the ε that explores, but the exploration {rule} has "
      "not one ε for all actors; give a number, or a rule that has."
    )


def sees_bonus(config: Any) -> np.ndarray:
  """bool `[M]`: the explorers, where there are any, else all members."""
  size = config.num_members + config.num_explorers
  return np.arange(size) >= (config.num_members if config.num_explorers else 0)


def policy_names(num_members: int, num_explorers: int) -> tuple[str, ...]:
  """The group of each member that may be followed."""
  if not num_explorers:
    return ("policy",) * num_members
  return ("exploiter",) * num_members + ("explorer",) * num_explorers
