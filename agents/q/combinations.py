"""Refuses combinations of settings that cannot work, or that silently do nothing."""

import dataclasses
from collections.abc import Iterator
from typing import Any

from explorax import exploration

# A setting → another one without which it does nothing.
_NEEDS = {
  "beta": "bonus",
  "burn_in": "lstm_size",
  "cross_mixture_ratio": "num_policies",
  "duelling": "head_size",
  "explorers_see_reward": "num_explorers",
  "importance_exponent": "priority_exponent",
  "mask_per_step": "mask_prob",
  "noise_variance": "noisy_sigma",
  "noisy_torso": "noisy_sigma",
  "num_explorers": "bonus",
  "target_prior": "prior_scale",
}
# The members of an epinet are samples of its index, without parameters of their own.
_NOT_WITH_AN_INDEX = ("head_size", "sum_over_members", "noisy_sigma", "mask_prob")
_OF_VALUES = ("prior_scale", "max_abs_td", "transform_eps")

_Rules = Iterator[tuple[Any, str]]


def check(config: Any) -> None:
  """Refuses impossible combinations of a QConfig's settings.

  Raises:
    ValueError: with the settings, their values, and what to do.
  """
  for rules in (_needs, _excludes, _policies, _target):
    for is_wrong, message in rules(config):
      if is_wrong:
        raise ValueError(message)


def _needs(config: Any) -> _Rules:
  for name, other in _NEEDS.items():
    value, default = getattr(config, name), _default(config, name)
    needed = getattr(config, other)
    yield (
      value != default and needed == _default(config, other),
      f"{name} is {value!r}, but {other} is {needed!r}, with which {name} does "
      f"nothing; set {other}, or leave {name} at {default!r}.",
    )
  if config.bonus is not None:
    yield (
      config.num_members < config.bonus.min_members,
      f"num_members is {config.num_members}, but {type(config.bonus).__name__} needs "
      f"at least {config.bonus.min_members}; use more members, or another bonus.",
    )


def _excludes(config: Any) -> _Rules:
  for is_on, other, names in (
    (config.index_dim, "index_dim", _NOT_WITH_AN_INDEX),
    (config.target.atoms is not None, "target", _OF_VALUES),
    (config.evaluation is not None, "evaluation", ("evaluation_epsilon",)),
  ):
    for name in names:
      value, default = getattr(config, name), _default(config, name)
      yield (
        is_on and value != default,
        f"{name} is {value!r}, but {other} is {getattr(config, other)!r}, which has no "
        f"use for it; leave {name} at {default!r}, or change {other}.",
      )
  rules = list(_rules_of(config.exploration))
  yield (
    config.index_dim and config.target.atoms is not None,
    f"index_dim is {config.index_dim}, but the target {config.target} is of "
    "distributions, and an epinet has values; use another target, or no index.",
  )
  yield (
    config.index_dim and any(isinstance(rule, exploration.Ucb1) for rule in rules),
    f"index_dim is {config.index_dim}, but Ucb1 compares members over episodes, and an "
    "epinet's indices are new in each; use another rule, or no index.",
  )
  for rule in rules:
    explorers = getattr(rule, "explorers", None)
    yield (
      explorers is not None and explorers.number != config.num_explorers,
      f"{rule} says how often explorers are followed, but num_explorers is "
      f"{config.num_explorers}; give both the same number.",
    )


def _policies(config: Any) -> _Rules:
  number = config.num_policies
  yield (
    not -number <= config.evaluation_policy < number,
    f"evaluation_policy is {config.evaluation_policy}, but num_policies is {number}; "
    f"use 0 to {number - 1}, or -1 for the last.",
  )
  yield (
    number > 1 and config.ensemble_size > 1,
    f"num_policies is {number} with an ensemble of {config.ensemble_size}: an actor "
    "follows a policy of a mixture or a member of an ensemble; use one.",
  )
  yield (
    config.discount == 1 and (number > 1 or config.min_discount is not None),
    "discount is 1 in a mixture, whose discounts are spaced by the logarithm of "
    "1 - discount; lower it.",
  )
  yield (
    config.min_discount is not None and config.min_discount > config.discount,
    f"min_discount is {config.min_discount}, above the discount of {config.discount}; "
    "lower it.",
  )


def _target(config: Any) -> _Rules:
  target, rule = config.target, config.exploration
  has_one_epsilon = (
    isinstance(rule, exploration.EpsilonGreedy)
    and isinstance(rule.of, exploration.Greedy)
    and not rule.ladder
  )
  yield (
    target.follows_exploration and not has_one_epsilon,
    f"target.epsilon is None (the exploration's epsilon), but the exploration {rule} "
    "does not have one epsilon for all actors; give a number, or another rule.",
  )
  yield (
    target.is_multi_step and config.sequence_length + config.n_step == 2,
    f"the target {target} needs several environment steps, but sequence_length and "
    "n_step are 1: raise one, or use a one-step target.",
  )


def _default(config: Any, name: str) -> Any:
  (default,) = (x.default for x in dataclasses.fields(config) if x.name == name)
  return default


def _rules_of(rule: Any) -> Iterator[Any]:
  """The rule, and those that it wraps."""
  while rule is not None:
    yield rule
    rule = getattr(rule, "of", None)
