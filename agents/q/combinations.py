"""Refuses combinations of settings that would silently do nothing, or other things."""

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


def check(config: Any) -> None:
  """Refuses impossible combinations of a QConfig's settings.

  Raises:
    ValueError: with the settings, their values, and what to do.
  """
  for refusals in (_without_effect, _contradictions, _policies):
    for message in refusals(config):
      raise ValueError(message)


def _without_effect(config: Any) -> Iterator[str]:
  defaults = {field.name: field.default for field in dataclasses.fields(config)}
  unused = [
    (name, other)
    for name, other in _NEEDS.items()
    if getattr(config, other) == defaults[other]
  ]
  if config.index_dim:
    unused += [(name, "index_dim") for name in _NOT_WITH_AN_INDEX]
  if config.target.atoms is not None:
    unused += [(name, "target") for name in _OF_VALUES]
  if config.evaluation is not None:
    unused.append(("evaluation_epsilon", "evaluation"))
  for name, other in unused:
    value, default = getattr(config, name), defaults[name]
    if value != default:
      yield (
        f"{name} is {value!r}, but {other} is {getattr(config, other)!r}, with which "
        f"{name} does nothing; leave {name} at {default!r}, or change {other}."
      )


def _contradictions(config: Any) -> Iterator[str]:
  target, rule = config.target, config.exploration
  if config.bonus is not None and config.num_members < config.bonus.min_members:
    yield (
      f"num_members is {config.num_members}, but {type(config.bonus).__name__} needs "
      f"at least {config.bonus.min_members}; use more members, or another bonus."
    )
  if config.index_dim and target.atoms is not None:
    yield (
      f"index_dim is {config.index_dim}, but {target} is of distributions, and an "
      "epinet has values; use another target, or no index."
    )
  if target.follows_exploration and not _has_one_epsilon(rule):
    yield (
      f"target.epsilon is None (the exploration's epsilon), but the exploration {rule} "
      "does not have one epsilon for all actors; give a number, or another rule."
    )
  if target.is_multi_step and config.sequence_length + config.n_step == 2:
    yield (
      f"the target {target} needs several environment steps, but sequence_length and "
      "n_step are 1: raise one, or use a one-step target."
    )
  while rule is not None:  # The rule, and those that it wraps.
    if config.index_dim and isinstance(rule, exploration.Ucb1):
      yield (
        f"index_dim is {config.index_dim}, but Ucb1 compares members over episodes, "
        "and an epinet's indices are new in each; use another rule, or no index."
      )
    explorers = getattr(rule, "explorers", None)
    if explorers is not None and explorers.number != config.num_explorers:
      yield (
        f"{rule} says how often explorers are followed, but num_explorers is "
        f"{config.num_explorers}; give both the same number."
      )
    rule = getattr(rule, "of", None)


def _policies(config: Any) -> Iterator[str]:
  number, least = config.num_policies, config.min_discount
  if not -number <= config.evaluation_policy < number:
    yield (
      f"evaluation_policy is {config.evaluation_policy}, but num_policies is {number}; "
      f"use 0 to {number - 1}, or -1 for the last."
    )
  if number > 1 and config.ensemble_size > 1:
    yield (
      f"num_policies is {number} with an ensemble of {config.ensemble_size}: an actor "
      "follows a policy of a mixture or a member of an ensemble; use one."
    )
  if least is not None and least > config.discount:
    yield f"min_discount is {least}, above the discount of {config.discount}; lower it."


def _has_one_epsilon(rule: Any) -> bool:
  return (
    isinstance(rule, exploration.EpsilonGreedy)
    and isinstance(rule.of, exploration.Greedy)
    and not rule.ladder
  )
