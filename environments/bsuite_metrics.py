"""When bsuite calls Deep Sea solved."""

from collections.abc import Mapping


class SolvedRule:
  """Finds the episode in which Deep Sea is solved, as bsuite's score defines it.

  It is the first episode n ≥ `min_episode` at which the average regret so far,

      total_bad_episodes(n) / n,

  is below `threshold` (bsuite/experiments/deep_sea/analysis.py, `find_solution`).
  bsuite itself looks at the episodes in its log only, which are spaced by the
  logarithm; here every episode counts, so that its number may be the later one.
  """

  def __init__(self, threshold: float = 0.9, min_episode: int = 1):
    if not 0 < threshold <= 1:
      raise ValueError(
        f"the threshold of the average regret is {threshold}; it must lie above 0 and "
        "at most at 1 (bsuite's is 0.9)."
      )
    if min_episode < 1:
      raise ValueError(f"min_episode is {min_episode}; episodes count from 1.")
    self.threshold = threshold
    self.min_episode = min_episode
    self.solved_episode: int | None = None
    self._bad_episodes = 0.0  # Counted here, where the environment does not.

  def take(self, episode: int, metrics: Mapping[str, float]) -> None:
    """Takes in an episode's metrics, where they tell whether it was bad.

    Args:
      episode: how many episodes have ended, this one included (from 1).
      metrics: with bsuite's `total_bad_episodes`, or `bad_episode` of this one.
    """
    if "total_bad_episodes" in metrics:
      self.update(episode, metrics["total_bad_episodes"])
    elif "bad_episode" in metrics:
      self._bad_episodes += metrics["bad_episode"]
      self.update(episode, self._bad_episodes)

  def update(self, episode: int, total_bad_episodes: float) -> int | None:
    """Takes one episode's count in and returns `solved_episode` so far.

    Args:
      episode: how many episodes have ended, this one included (from 1).
      total_bad_episodes: how many of them were bad.
    """
    if not 0 <= total_bad_episodes <= episode or episode < 1:
      raise ValueError(
        f"{total_bad_episodes} bad episodes out of {episode} is impossible; count "
        "episodes from 1, the one that has just ended included."
      )
    if (
      self.solved_episode is None
      and episode >= self.min_episode
      and total_bad_episodes / episode < self.threshold
    ):
      self.solved_episode = episode
    return self.solved_episode


def solved_rule(name: str) -> SolvedRule | None:
  """The rule for the environment `name`, or None where bsuite has none.

  0.9 for `bsuite:deep_sea/…`; 0.8 from the hundredth episode on for
  `bsuite:deep_sea_stochastic/…`, where luck makes a few good episodes
  (bsuite/experiments/deep_sea_stochastic/analysis.py). The same for their twins in
  JAX, `jax:deep_sea/…` without and with `stochastic=true`.
  """
  if name.startswith("jax:deep_sea/"):
    # Here, so that jax is not imported with the package.
    from explorax.environments import deep_sea, jax_environments

    twin, _ = jax_environments.make(name.removeprefix("jax:"))
    stochastic = isinstance(twin, deep_sea.DeepSea) and twin.stochastic
  elif name.startswith(("bsuite:deep_sea/", "bsuite:deep_sea_stochastic/")):
    stochastic = "stochastic" in name
  else:
    return None
  return SolvedRule(threshold=0.8, min_episode=100) if stochastic else SolvedRule()
