"""Metrics of an environment about its episodes, besides their return."""

import dm_env

from explorax.environments import standard


def episode_metrics(environment: dm_env.Environment) -> dict[str, float]:
  """The environment's own metrics; call it after an episode's last step.

  They come from the environment's method `episode_metrics()`, if it has one: a dict of
  numbers by name, such as the coverage of a maze. For bsuite's they are those of
  `bsuite_info()`, accumulated since the environment was made; Deep Sea has
  `total_bad_episodes` (those in which the agent went left on the way to the goal) and
  `denoised_return` (how often it found the treasure). Empty for all others.
  """
  raw = standard.unwrap(environment)
  info = getattr(raw, "episode_metrics", None) or getattr(raw, "bsuite_info", None)
  return {key: float(value) for key, value in info().items()} if info else {}


def counts_over_episodes(environment: dm_env.Environment) -> bool:
  """Whether its metrics are bsuite's, accumulated since the environment was made."""
  raw = standard.unwrap(environment)
  return hasattr(raw, "bsuite_info") and not hasattr(raw, "episode_metrics")
