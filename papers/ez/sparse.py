"""R2D2 with εz-greedy and with ε-greedy exploration in a room with one reward."""

import dataclasses
from typing import Any

import numpy as np

from explorax import ranges
from explorax.experiments import config as config_lib
from explorax.papers import claims, layers, panels, training, types
from explorax.papers.ez import runs
from explorax.papers.tdu import episodes

_AGENTS = {"r2d2_ez": "εz-greedy", "r2d2_sarsa_lambda": "ε-greedy"}


@dataclasses.dataclass(frozen=True)
class Config(ranges.Checked):
  """Settings of the figure, those of `sparse` in `learning`; the agents are presets."""

  environment: str = "jax:gridworld/30,time_limit=150"
  num_steps: ranges.PositiveInt = 20_000
  eval_episodes: ranges.PositiveInt = 100
  first_seed: ranges.Seed = 100  # `learning` has 0 to 9.
  num_seeds: ranges.PositiveInt = 20
  seeds_per_task: ranges.PositiveInt = 10  # They run in one program.


def run(settings: types.Settings) -> types.Results:
  """Trains the seeds of a task in one program, with an evaluation at the end.

  The only reward of an episode is 1, at the goal.

  Returns:
    Of each seed `[S]`: `solved`, the first episode of training that reached the goal,
    or 0; `episodes` of training; `goals`, how many of them reached it; `evaluated`, the
    share of the evaluation's episodes that reached it.
  """
  seeds = settings["seeds"]
  trained = training.train(
    config_lib.RunConfig(
      agent=settings["agent"],
      settings=tuple(settings.get("changes", ())),
      env=settings["environment"],
      runner="device",
      seed=seeds[0],
      num_seeds=len(seeds),
      steps=settings["num_steps"],
      eval_episodes=settings["eval_episodes"],
    ),
  )
  goals = [
    np.array([x.episode_return for x in trained.episodes[seed]]) > 0 for seed in seeds
  ]
  return {
    "solved": np.array([np.argmax(x) + 1 if x.any() else 0 for x in goals]),
    "episodes": np.array([len(x) for x in goals]),
    "goals": np.array([np.sum(x) for x in goals]),
    "evaluated": np.array(
      [trained.evaluations[seed][-1].mean_return for seed in seeds]
    ),
  }


def tasks(config: Any, agents: dict[str, types.Settings]) -> list[types.Task]:
  """Tasks of `run`: agents (label → settings) × seeds, in the config's environment."""
  return [
    task
    for label, agent in agents.items()
    for task in types.split(
      label,
      {
        "environment": config.environment,
        "eval_episodes": config.eval_episodes,
        **agent,
      },
      config.num_seeds,
      config.seeds_per_task,
      agent["num_steps"],
      config.first_seed,
    )
  ]


def reaches(table: types.Table) -> np.ndarray:
  """Whether most episodes of the evaluation reach the goal, 0 or 1, `[S, 1]`."""
  return (table.per_seed("evaluated") > 0.5).astype(np.float64)


def share_of_training(table: types.Table) -> np.ndarray:
  """The share of the training's episodes that reach the goal, `[S, 1]`."""
  return table.per_seed("goals") / table.per_seed("episodes")


def shares(lines: layers.Lines) -> list[list[panels.Panel]]:
  """A row for each line: the shares of episodes that reach the goal."""
  return [
    [
      panels.Panel(
        layers.Rows("evaluated", lines),
        grid="x",
        xlabel="share of the last evaluation's episodes at the goal",
        xlim=(-0.02, 1.02),
      ),
      panels.Panel(
        layers.Rows(share_of_training, lines),
        grid="x",
        xlabel="share of the training episodes at the goal",
        yticklabels=[],
      ),
    ]
  ]


def _claims(config: Config) -> list[types.Claim]:
  """Two tests, corrected by Holm's method."""
  del config
  ez, epsilon = ({"agent": agent} for agent in _AGENTS)
  return claims.corrected(
    [
      claims.Compare(
        "with εz-greedy exploration more seeds end with a policy that reaches the goal",
        reaches,
        ez,
        epsilon,
        "shares of seeds {a:.2g} and {b:.2g}, {gap}",
        spec=".2f",
      ),
      episodes.fewer(
        "εz-greedy exploration finds the goal in fewer episodes",
        ez,
        epsilon,
        "εz-greedy and ε-greedy (solved: found)",
      ),
    ]
  )


FIGURES = (
  types.Figure(
    name="ez/sparse",
    title="R2D2 in a room of 30 × 30 with one reward",
    source=f"Our own, of {runs.PAPER}, section 5",
    claim="temporally-extended exploration improves on ε-greedy where exploration is "
    "hard; on Atari so with R2D2.",
    config=Config(),
    quick=Config(
      "jax:gridworld/5,time_limit=20", num_steps=300, eval_episodes=2, num_seeds=1
    ),
    tasks=lambda config: tasks(
      config,
      {agent: {"agent": agent, "num_steps": config.num_steps} for agent in _AGENTS},
    ),
    compute=run,
    panels=lambda config: shares(
      {label: {"agent": agent} for agent, label in _AGENTS.items()}
    ),
    claims=_claims,
    caption="Small marks are seeds, large ones their means with 95 % t-intervals.",
    height=1.8,
    large=True,
  ),
)
