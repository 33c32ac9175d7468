"""Refuses combinations of settings that cannot work, or that do nothing."""

from collections.abc import Iterator
from typing import Any

from explorax import exploration


def check(config: Any) -> None:
  """Refuses impossible combinations of a QConfig's settings.

  Raises:
    ValueError: with the settings, their values, and what to do.
  """
  for part in (_network, _ensemble, _epinet, _acting, _mixture, _target, _replay):
    for is_wrong, message in part(config):
      if is_wrong:
        raise ValueError(message)


_Rules = Iterator[tuple[Any, str]]


def _network(config: Any) -> _Rules:
  yield (
    config.duelling and not config.head_size,
    "duelling is on, but head_size is 0: the value and the advantages would share all "
    "layers but one; give heads hidden units, or turn duelling off.",
  )
  yield (
    config.noisy_torso and not config.noisy_sigma,
    "noisy_torso is on, but noisy_sigma is 0, so there is no noise; set noisy_sigma, "
    "or turn noisy_torso off.",
  )
  yield (
    config.noise_variance is not None and not config.noisy_sigma,
    f"noise_variance is {config.noise_variance}, but noisy_sigma is 0, so there is no "
    "noise; set noisy_sigma, or leave noise_variance at None.",
  )
  yield (
    config.burn_in and not config.lstm_size,
    f"burn_in is {config.burn_in}, but without an LSTM there is no state to warm up; "
    "set it to 0.",
  )


def _ensemble(config: Any) -> _Rules:
  bonus = config.bonus
  for name in ("beta", "num_explorers"):
    value = getattr(config, name)
    yield (
      value and bonus is None,
      f"{name} is {value}, but there is no bonus to scale or learn from; set one, or "
      f"leave {name} at 0.",
    )
  if bonus is not None:
    yield (
      config.num_members < bonus.min_members,
      f"num_members is {config.num_members}, but {type(bonus).__name__} needs at least "
      f"{bonus.min_members}; use more members, or another bonus.",
    )
  yield (
    not (config.explorers_see_reward or config.num_explorers),
    "explorers_see_reward is off, but num_explorers is 0, so there are no explorers; "
    "set num_explorers, or leave it on.",
  )
  yield (
    config.target_prior == "distinct" and not config.prior_scale,
    "target_prior is 'distinct', but prior_scale is 0, so there are no priors; set "
    "prior_scale, or leave target_prior at 'shared'.",
  )
  yield (
    config.mask_per_step and config.mask_prob == 1,
    "mask_per_step is True, but mask_prob is 1: every member learns from all; lower "
    "mask_prob, or leave mask_per_step at False.",
  )


def _epinet(config: Any) -> _Rules:
  """Members that are samples of an index share its epinet's parameters."""
  if not config.index_dim:
    return
  begin = f"index_dim is {config.index_dim}, but "
  yield (
    config.target.atoms is not None,
    begin + f"the target {config.target} is distributional, and an epinet has values; "
    "use another target, or set index_dim to 0.",
  )
  yield (
    any(isinstance(rule, exploration.Ucb1) for rule in _rules_of(config.exploration)),
    begin + "Ucb1 compares members over episodes, and an epinet's indices are new in "
    "each; use another rule, or set index_dim to 0.",
  )
  for name, needed in {
    "head_size": 0,
    "sum_over_members": False,
    "noisy_sigma": 0.0,
    "mask_prob": 1.0,
  }.items():
    value = getattr(config, name)
    yield (
      value != needed,
      f"{name} is {value}, but index_dim is {config.index_dim}, and the members of an "
      "epinet are samples of its index, without parameters of their own; leave "
      f"{name} at {needed}, or set index_dim to 0.",
    )


def _acting(config: Any) -> _Rules:
  yield (
    config.evaluation_epsilon and config.evaluation is not None,
    f"evaluation_epsilon is {config.evaluation_epsilon}, but the evaluation has its "
    "own rule; set the rule's epsilon, and leave evaluation_epsilon at 0.",
  )

  for rule in _rules_of(config.exploration):
    explorers = getattr(rule, "explorers", None)
    yield (
      explorers is not None and explorers.number != config.num_explorers,
      f"{rule} says how often explorers are followed, but num_explorers is "
      f"{config.num_explorers}; give both the same number.",
    )


def _mixture(config: Any) -> _Rules:
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
    config.cross_mixture_ratio and number == 1,
    f"cross_mixture_ratio is {config.cross_mixture_ratio}, but with num_policies 1 "
    "there is no other policy to relabel with; leave it at 0, or use more policies.",
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
  for name, default in {
    "prior_scale": 0.0,
    "max_abs_td": None,
    "transform_eps": None,
  }.items():
    value = getattr(config, name)
    yield (
      target.atoms is not None and value != default,
      f"{name} is {value}, but the target {target} is distributional: priors, clipped "
      "errors and a transformation are of values; leave it at "
      f"{default}, or use another target.",
    )


def _replay(config: Any) -> _Rules:
  yield (
    config.importance_exponent and not config.priority_exponent,
    f"importance_exponent is {config.importance_exponent}, but replay is uniform; "
    "also set priority_exponent, or leave it at 0.",
  )


def _rules_of(rule: Any) -> Iterator[Any]:
  """The rule, and those that it wraps."""
  while rule is not None:
    yield rule
    rule = getattr(rule, "of", None)
