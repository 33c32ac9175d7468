"""Paper 3's agents on small problems; the paper itself has Atari games only."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from explorax.papers import compute, draw, figures, judge
from explorax.papers.tdu import problems

# The five agents of the paper's figure 2, by preset. Its bootstrapped DQN is that of
# Osband et al. (2016), whose members differ only in their initial weights.
AGENTS = {
  "double DQN": "double_dqn",
  "bootstrapped DQN": "bootstrapped_dqn_no_prior",
  "voting": "ensemble_voting",
  "UCB": "ucb",
  "InfoGain": "ucb_infogain",
}
_BASELINES = ("double DQN", "bootstrapped DQN")
_LINES = {label: {"agent": agent} for label, agent in AGENTS.items()}
_DEEP_SEA, _BREAKOUT = {"problem": "deep_sea"}, {"problem": "breakout"}
_WINDOW = 100  # Episodes; the paper's measure is the best mean of so many.
_SIZES = (4, 6, 8, 10)  # N of Deep Sea, of which bsuite has the last.
_LIMIT = 2000  # Episodes in Deep Sea (bsuite: 10,000).
# Steps in Breakout. The schedules are Table 1's, whose runs have ten million.
_STEPS = 100_000
# K (section 5), and no priors, as in the paper (Osband et al., 2018: 3).
_ENSEMBLE = {"num_members": 10, "prior_scale": 0.0}


def with_rule(settings: figures.Settings) -> dict[str, Any]:
  """Ensembles explore by the paper's rules, as on Atari: UCB has λ = 0.1."""
  if settings["agent"] == "double_dqn":
    return {**settings, **dict.fromkeys(_ENSEMBLE)}
  return {**settings, "scale": 0.1 if "ucb" in settings["agent"] else None}


def solve(settings: figures.Settings) -> figures.Results:
  """The episodes until Deep Sea is solved."""
  return problems.deep_sea(with_rule(settings))


def breakout_changes(settings: figures.Settings) -> list[str]:
  """The changes of the preset in Breakout: Table 1's schedules, scaled to `num_steps`.

  Its numbers are shares of its ten million steps, or of the updates (one per four
  steps).
  """
  num_steps = settings["num_steps"]
  changes = [
    *problems.changes(with_rule(settings)),
    "batch_size=32",
    "updates_per_step=0.25",
    f"random_steps={num_steps // 200}",
    f"min_replay_size={num_steps // 200}",
    f"replay_capacity={num_steps // 10}",
    f"target_update_period={max(1, num_steps // 1000)}",
  ]
  if settings["agent"] == "double_dqn":
    steps = f"({num_steps // 10}, {num_steps // 2})"
    changes.append(f"exploration.epsilon=Piecewise((1.0, 0.1, 0.01), {steps})")
  return changes


def play(settings: figures.Settings) -> figures.Results:
  """Learns Breakout for `num_steps`: `best` `[S]`, see `best_mean`."""
  record = compute.train(
    {**settings, "changes": breakout_changes(settings)},
    env="jax:breakout",
    steps=settings["num_steps"],
    eval_episodes=0,
  )
  returns = [[x.episode_return for x in each] for each in record.episodes.values()]
  return {"best": np.array([*map(best_mean, returns)])}


def best_mean(returns: Sequence[float]) -> float:
  """The best mean return of 100 consecutive episodes, or of all if they are fewer."""
  num = min(len(returns), _WINDOW)
  sums = np.concatenate([[0.0], np.cumsum(returns)])
  return float(np.max(sums[num:] - sums[:-num]) / num)


def _more_bricks(label: str, other: str) -> judge.Claim:
  return judge.Above("", "best", _LINES[label], _LINES[other], _BREAKOUT, spec=".1f")


def _fewer_episodes(label: str, other: str) -> judge.Claim:
  return judge.Sooner("", _LINES[label], _LINES[other], _DEEP_SEA)


def _no_benefit(table: figures.Table) -> judge.Finding | None:
  """That InfoGain is not better than UCB on both problems."""
  parts = [better("InfoGain", "UCB") for better in (_more_bricks, _fewer_episodes)]
  found = judge.All("InfoGain has no uniform benefit on top of UCB", parts)(table)
  if found is None or found.held is None:
    return found
  return dataclasses.replace(found, held=not found.held)


FIGURES = (
  figures.Figure(
    name="ucb/small",
    title="Exploration by Q-ensembles on small problems",
    source="Chen et al. (2017), UCB Exploration via Q-Ensembles; a figure of our own",
    runs=[
      figures.Grid(
        solve,
        [*_LINES.values()],
        {**_DEEP_SEA, **_ENSEMBLE, "size": _SIZES, "max_episodes": _LIMIT},
        seeds_per_task=3,  # Side by side.
      ),
      figures.Grid(
        play,
        [*_LINES.values()],
        {**_BREAKOUT, **_ENSEMBLE, "num_steps": _STEPS},
        seeds_per_task=3,
      ),
    ],
    quick={
      "agent": ("ucb",),
      "size": (4,),
      "max_episodes": 50,
      "num_steps": 2000,
      "num_seeds": 1,
    },
    panels=[
      [
        problems.solved_rows(
          _LINES, {**_DEEP_SEA, "size": size}, f"Deep Sea, N = {size}", _LIMIT
        )
        for size in _SIZES
      ],
      [
        draw.Rows(
          lines=_LINES,
          x="best",
          where=_BREAKOUT,
          axes={
            "title": "Breakout: best mean of a run",
            "xlabel": f"bricks per episode (mean of {_WINDOW})",
            "xlim": (0, None),
          },
        ),
      ],
    ],
    claims=[
      *(
        judge.All(
          f"{title}: {label} outperforms {' and '.join(others)}",
          [better(label, other) for other in others],
        )
        for title, better in (("Breakout", _more_bricks), ("Deep Sea", _fewer_episodes))
        for label, others in (
          ("UCB", _BASELINES),
          ("voting", _BASELINES),
          ("UCB", ("voting",)),
        )
      ),
      _no_benefit,
    ],
    problem="size",
  ),
)
