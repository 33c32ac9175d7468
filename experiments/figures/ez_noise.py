"""Paper 1's figures 7 and 8: GridWorld and MountainCar with noisy transitions."""

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from explorax.experiments.figures import ez_domains, ez_runs, ez_sweeps, types

if TYPE_CHECKING:
  from matplotlib import figure as mpl_figure

_DOMAINS = {
  "gridworld": ez_domains.GridWorld,
  "mountain_car": ez_domains.MountainCar,
}


@dataclasses.dataclass(frozen=True)
class _Noise:
  """What both figures have."""

  num_seeds: int = 30  # Appendix B.

  def _check(self, noises: tuple[float, ...], shown: tuple[float, ...]) -> None:
    ez_runs.check_not_empty(self, "noises", "shown")
    ez_runs.check_at_least(self, noises=0, num_seeds=1)
    if list(noises) != sorted(noises) or noises[0] != 0 or len(noises) < 2:
      raise ValueError(
        f"noises is {noises}; give 0, and at least one more, in rising order."
      )
    if not set(shown) <= set(noises):
      raise ValueError(f"shown is {shown}; it must be some of the noises, {noises}.")


@dataclasses.dataclass(frozen=True)
class GridWorldConfig(_Noise):
  """Settings of figure 7. The noise scales are not in the paper's text: our own."""

  # The probability of going to a random neighbour instead.
  noises: tuple[float, ...] = (0.0, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.9)
  shown: tuple[float, ...] = (0.0, 0.1, 0.3, 0.7)  # "Four levels of noise."
  gridworld: ez_domains.GridWorld = dataclasses.field(
    default_factory=ez_domains.GridWorld
  )

  def __post_init__(self):
    self._check(self.noises, self.shown)
    ez_runs.check_shares(self, "noises")


@dataclasses.dataclass(frozen=True)
class MountainCarConfig(_Noise):
  """Settings of figure 8. The noise scales are not in the paper's text: our own."""

  noises: tuple[float, ...] = (0.0, 0.1, 0.25, 0.5, 1.0, 2.0)  # Variance.
  shown: tuple[float, ...] = (0.0, 0.25, 1.0, 2.0)
  mountain_car: ez_domains.MountainCar = dataclasses.field(
    default_factory=ez_domains.MountainCar
  )

  def __post_init__(self):
    self._check(self.noises, self.shown)


def _tasks(config: Any) -> list[types.Task]:
  (domain,) = (name for name in _DOMAINS if hasattr(config, name))
  setup = dataclasses.asdict(getattr(config, domain))
  return [
    types.Task(
      f"{rule}_{noise}",
      {
        "domain": domain,
        "rule": rule,
        "noise": noise,
        # Which curves are drawn is kept here, where drawing finds it.
        "shown": noise in config.shown,
        "setup": setup,
        "num_seeds": config.num_seeds,
      },
    )
    for noise in config.noises
    for rule in ez_runs.RULES
  ]


def _run(settings: types.Settings, tick: types.Tick) -> types.Results:
  del tick
  setup = _DOMAINS[settings["domain"]](**settings["setup"])
  seeds = (0, settings["num_seeds"])
  return setup.learn(settings["rule"], seeds, settings["noise"])


def _draw(done: Sequence[types.Done]) -> "mpl_figure.Figure":
  return ez_sweeps.draw(done, "noise", _label(done))


def _label(done: Sequence[types.Done]) -> str:
  if done[0].settings["domain"] == "gridworld":
    return "noise scale (probability)"
  return "noise scale (variance of the force)"


def _judge_gridworld(done: Sequence[types.Done]) -> list[types.Finding]:
  noises = ez_sweeps.values(done, "noise")
  means = {rule: ez_sweeps.means(done, rule) for rule in ez_runs.RULES}
  best = {rule: int(np.argmax(y.mean(axis=0))) for rule, y in means.items()}
  first, first_words = ez_runs.gap(means["ez"][:, 0], means["epsilon"][:, 0])
  positive = 1 + int(np.argmax(means["epsilon"][:, 1:].mean(axis=0)))
  gain, gain_words = ez_runs.gap(means["epsilon"][:, positive], means["epsilon"][:, 0])
  return [
    types.Finding(
      "without noise, εz-greedy earns more",
      first_words,
      bool(first.low > 0),
    ),
    types.Finding(
      "some noise helps ε-greedy",
      f"best with noise at {noises[positive]:g}: {gain_words}",
      bool(gain.low > 0),
    ),
    _judge_loss(done, "strong noise harms both", best),
    types.Finding(
      "εz-greedy is best at less noise than ε-greedy",
      f"at {noises[best['ez']]:g} against {noises[best['epsilon']]:g}",
      bool(best["ez"] < best["epsilon"]),
    ),
  ]


def _judge_mountain_car(done: Sequence[types.Done]) -> list[types.Finding]:
  noises = ez_sweeps.values(done, "noise")
  best = {
    rule: int(np.argmax(ez_sweeps.means(done, rule).mean(axis=0)))
    for rule in ez_runs.RULES
  }
  return [
    _judge_loss(done, "noise harms both", dict.fromkeys(ez_runs.RULES, 0)),
    types.Finding(
      "both are best without noise",
      ", ".join(
        f"{ez_runs.LABELS[rule]} at {noises[best[rule]]:g}" for rule in ez_runs.RULES
      ),
      all(index == 0 for index in best.values()),
    ),
  ]


def _judge_loss(
  done: Sequence[types.Done], claim: str, start: dict[str, int]
) -> types.Finding:
  """Whether both rules earn less at the strongest noise than at those of `start`."""
  noises = ez_sweeps.values(done, "noise")
  losses = {}
  for rule in ez_runs.RULES:
    means = ez_sweeps.means(done, rule)
    losses[rule] = ez_runs.gap(means[:, -1], means[:, start[rule]])
  words = "; ".join(
    f"{ez_runs.LABELS[rule]} {losses[rule][1]} from {noises[start[rule]]:g} to "
    f"{noises[-1]:g}"
    for rule in ez_runs.RULES
  )
  held = all(interval.high < 0 for interval, _ in losses.values())
  return types.Finding(claim, words, held)


FIGURES = (
  types.Figure(
    name="ez/fig7",
    title="GridWorld with noise in the transitions",
    source=f"{ez_runs.PAPER}, figure 7",
    claim="without noise εz-greedy is better; ε-greedy gains from a little noise, "
    "which explores for it; much noise harms both, εz-greedy slightly sooner.",
    config=GridWorldConfig(),
    quick=GridWorldConfig(
      noises=(0.0, 0.2, 0.9),
      shown=(0.0, 0.9),
      gridworld=ez_domains.GridWorld(size=8, episodes=20),
      num_seeds=5,
    ),
    tasks=_tasks,
    run=_run,
    draw=_draw,
    judge=_judge_gridworld,
  ),
  types.Figure(
    name="ez/fig8",
    title="MountainCar with noise on the force",
    source=f"{ez_runs.PAPER}, figure 8",
    claim="both agents suffer from noise, and are best in the deterministic case.",
    config=MountainCarConfig(),
    quick=MountainCarConfig(
      noises=(0.0, 1.0),
      shown=(0.0, 1.0),
      mountain_car=ez_domains.MountainCar(episodes=5, time_limit=1000),
      num_seeds=3,
    ),
    tasks=_tasks,
    run=_run,
    draw=_draw,
    judge=_judge_mountain_car,
  ),
)
