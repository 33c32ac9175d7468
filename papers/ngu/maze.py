"""Exploration of the Random Disco Maze: the share of positions that agents visit.

Paper 2's figure 2, and the variations that its tables 3 and 9 and its figures 10 to 13
test on Atari.
"""

from typing import Any

import numpy as np

from explorax.experiments.recording import statistics
from explorax.papers import compute, draw, figures, judge

_PAPER = "Badia et al. (2020), Never Give Up"


def _line(*changes: str, agent: str = "ngu") -> dict[str, Any]:
  return {"agent": agent, "changes": [*changes]}


_EIGHT = ("num_policies=8", "discount=0.997", "min_discount=0.99")  # γ: table 6.
_NGU, _N8 = _line(), _line(*_EIGHT)
_CMR = _line(*_EIGHT, "cross_mixture_ratio=0.5")
_FIGURE_2 = {
  "NGU": _NGU,
  "random projections": _line("bonus.states=random"),
  "RND": _line(agent="r2d2_rnd"),
}
# What it learns has no effect.
_UNIFORM = _line("evaluation_epsilon=1.0", "updates_per_step=0.001", agent="r2d2_rnd")
_LONG = {"NGU": _NGU, "uniformly random": _UNIFORM}
_VARIANTS = {
  "NGU": _NGU,
  "N = 8": _N8,
  "N = 8, CMR 0.5": _CMR,
  "without RND": _line("bonus.rnd=false"),
  "k = 5": _line("bonus.num_neighbors=5"),
  "k = 30": _line("bonus.num_neighbors=30"),
  "L = 10": _line("bonus.max_modulation=10"),
  "β = 0.2": _line("beta=0.2"),
  "M kept for 3 episodes": _line("bonus.episodes_per_memory=3"),
}
# Smaller than the paper's: a seed takes minutes on one core. All other settings are the
# presets', from paper 2's tables 6 and 7.
_SETTINGS = {
  "size": 7,  # 21 in the paper; 17 positions can be reached, against 199.
  "num_steps": 40_000,  # Environment steps of training; not in the paper.
  "batch_size": 32,  # Sequences; 64 in the paper (table 6).
  "min_replay_size": 2_000,  # Environment steps before learning; ours.
  "eval_every": 10_000,  # Environment steps between two evaluations; ours.
  "eval_episodes": 50,  # Of an evaluation; ours.
}
_QUICK = {
  "size": 5,
  "num_steps": 300,
  "batch_size": 4,
  "min_replay_size": 100,
  "eval_every": 150,
  "eval_episodes": 2,
  "num_seeds": 1,
}
_RANDOM = 0.1  # The share that a policy at random visits, over 4,000 episodes.


def run(settings: figures.Settings) -> figures.Results:
  """Trains a seed; in evaluations, of other mazes, the policy is greedy, as in table 7.

  Returns:
    `env_steps` and `coverage` of the E evaluations, `[1, E]`.
  """
  size, (seed,) = settings["size"], settings["seeds"]
  changes = {
    # Episodes in a small maze are short: longer sequences would be mostly padding.
    "sequence_length": 5,  # 50 in the paper (table 7).
    "sequence_period": 5,  # 50 in the paper (table 7).
    "batch_size": settings["batch_size"],
    "updates_per_step": 0.1,  # Ours.
    "min_replay_size": settings["min_replay_size"],
    # The most exploratory policy is evaluated: there is nothing else to do in a maze.
    "evaluation_policy": -1,
    # No more than a run fills, because sampling computes over replay's whole capacity.
    "replay_capacity": settings["num_steps"],
  }
  if settings["agent"] == "ngu":
    # Enough for three episodes at the maze's time limit, and no more, because the
    # search for neighbours computes over the memory's whole capacity.
    changes["bonus.memory_capacity"] = 3 * (2 * size**2 + 1)
  changes |= dict(change.split("=") for change in settings["changes"])
  record = compute.train(
    {**settings, "changes": [f"{k}={v}" for k, v in changes.items()]},
    env=f"jax:disco_maze/{size}",
    steps=settings["num_steps"],
    eval_every=settings["eval_every"],
    eval_episodes=settings["eval_episodes"],
  )

  evaluations = record.evaluations[seed]
  means = [np.mean([y.metrics["coverage"] for y in x.episodes]) for x in evaluations]
  return {
    "env_steps": np.array([[x.env_steps for x in evaluations]], np.int64),
    "coverage": np.array([means], np.float64),
  }


def _last(table: figures.Table) -> np.ndarray:
  """The share of positions in the last evaluation, `[S]`."""
  return table.joined("coverage")[:, -1]


def _explores_more(
  claim: str,
  agent: figures.Selection,
  other: figures.Selection,
  test: judge.Test = judge.welch,
) -> judge.Above:
  return judge.Above(claim, _last, agent, other, test=test, spec=".3g")


def _goes_on(table: figures.Table) -> judge.Finding | None:
  """That NGU still learns after the steps of figure 2."""
  learned, at = table.where(**_NGU), _SETTINGS["num_steps"]
  if not learned:
    return None
  steps, coverage = learned.joined("env_steps")[0], learned.joined("coverage")
  claim = f"NGU explores more at the end than after {at:,} steps"
  then = coverage[:, np.argmin(np.abs(steps - at))]
  return judge.above(claim, _last(learned), then, test=judge.paired, spec=".3g")


def _explores_nearly_all(
  table: figures.Table,
) -> tuple[bool | None, str, statistics.Interval]:
  """Undecided if it does not: the steps may be too few."""
  share, (steps,) = statistics.mean(_last(table)), table.values("num_steps")
  return share.is_above(0.8) or None, f"after {steps:,} steps", share


_NEARLY_ALL = judge.Check(
  "with learned states, nearly any maze is explored (at least 0.8 of it)",
  _explores_nearly_all,
  _NGU,
  test="t-interval",
  spec=".3g",
)


def _curves(lines: draw.Lines, top: float) -> list[list[draw.Panel]]:
  axes = {"xlabel": "environment steps", "ylabel": "share of positions visited"}
  return [
    [
      draw.Curves(
        y="coverage",
        lines=lines,
        # After the same steps of each seed.
        x=lambda table: table.joined("env_steps")[0],
        guides=[draw.guide("axhline", _RANDOM)],
        axes={**axes, "ylim": (0, top)},
      )
    ]
  ]


FIGURES = (
  figures.Figure(
    name="ngu/fig2",
    title="Random Disco Maze: the share of positions visited in an episode",
    source=f"{_PAPER}, figure 2",
    runs=[figures.Grid(run, [*_FIGURE_2.values()], _SETTINGS, num_seeds=10)],
    quick={**_QUICK, "changes": []},
    panels=_curves(_FIGURE_2, 0.5),
    claims=[
      *(
        _explores_more(
          f"learned controllable states explore more than {other}",
          *(_NGU, _FIGURE_2[other], judge.paired),
        )
        for other in ("random projections", "RND")
      ),
      _NEARLY_ALL,
    ],
  ),
  figures.Figure(
    name="ngu/long",
    title="Random Disco Maze: longer runs of Never Give Up, and uniform actions",
    source=f"Our own, of {_PAPER}, figure 2",
    runs=[
      figures.Grid(
        run,
        [*_LONG.values()],
        {**_SETTINGS, "num_steps": 200_000, "eval_every": 20_000},
        num_seeds=8,
        first_seed=100,  # Figure 2 has 0 to 9.
      )
    ],
    quick=_QUICK,
    panels=_curves(_LONG, 1),
    claims=[
      judge.Holm(
        [
          _explores_more(
            "learned controllable states explore more than uniform actions",
            *(_NGU, _UNIFORM, judge.paired),
          ),
          _goes_on,
        ]
      ),
      _NEARLY_ALL,
    ],
  ),
  figures.Figure(
    name="ngu/variants",
    title="Never Give Up's settings in the Random Disco Maze",
    source=f"Our own, of settings that {_PAPER}, vary on Atari in tables 3 and 9 and "
    "figures 10 to 13",
    runs=[
      figures.Grid(run, [_NGU], _SETTINGS, num_seeds=10),
      figures.Grid(run, [*_VARIANTS.values()][1:], _SETTINGS, num_seeds=5),
    ],
    quick={**_QUICK, "changes": (_N8["changes"], _CMR["changes"])},
    panels=[
      [
        draw.Rows(
          x=_last,
          lines=_VARIANTS,
          sort=True,
          guides=[draw.guide("axvline", _RANDOM)],
          axes={"xlabel": "share of positions visited in the last evaluation"},
        )
      ]
    ],
    # Most claims are from the paper's text on Atari; the last three are ours: there a β
    # of 0.3 is better than 0.2 and 0.5, and the paper does not compare memories.
    claims=[
      _explores_more(claim, _VARIANTS[agent], _VARIANTS[other])
      for claim, agent, other in (
        (
          "sharing experience between policies (CMR) harms",
          *("N = 8", "N = 8, CMR 0.5"),
        ),
        ("RND's factor is beneficial", "NGU", "without RND"),
        ("k = 10 is better than 5", "NGU", "k = 5"),
        ("k = 10 is better than 30", "NGU", "k = 30"),
        ("a larger L is better", "L = 10", "NGU"),
        (
          "the most exploratory of 8 policies covers more than one",
          *("N = 8", "NGU"),
        ),
        ("the maze's β of 0.5 is better than 0.2", "NGU", "β = 0.2"),
        (
          "a memory of one episode is better than of 3",
          *("NGU", "M kept for 3 episodes"),
        ),
      )
    ],
  ),
)
