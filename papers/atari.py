"""Figures of Atari: agents in games, by human-normalised scores of evaluations.

A paper's file declares the agents, games, panels and claims. Agents are presets, with
settings if needed (`ngu@num_policies=2`); each run is one of `experiments.run` with the
local runner, and has no other settings than those of `Config`. For runs that must
survive an interruption, `experiments.sweep` takes the same agents, and
`experiments.report` has the same numbers.
"""

import dataclasses
import functools
from collections.abc import Callable, Collection, Mapping
from typing import Annotated, Any

import numpy as np

from explorax import ranges
from explorax.environments import atari57, atari_profiles
from explorax.experiments import config as config_lib
from explorax.experiments import settings as settings_lib
from explorax.papers import claims, layers, panels, training, types

Count = Annotated[int, ranges.Range(ge=1)]  # Of steps, more than an int32 holds.
_FRAMES = 4  # Of an environment step, in the profiles of all presets.

# Settings of quick versions: of all, and of agents that learn from sequences.
QUICK: dict[str, Any] = {
  "num_steps": 120,
  "eval_every": 60,
  "eval_steps": 1,
  "num_seeds": 1,
  "game_settings": "max_frames=200",
}
SHORT_SEQUENCES = (
  *("sequence_length=10", "sequence_period=10", "batch_size=2"),
  *("min_replay_size=80", "replay_capacity=1000", "lstm_size=16"),
)

# `[games]` of one seed → a number.
OverGames = Callable[[np.ndarray], np.floating[Any]]


@dataclasses.dataclass(frozen=True)
class Config(ranges.Checked):
  """Settings of runs; all others are those of the presets."""

  games: types.Distinct[Annotated[str, ranges.OneOf(atari57.references())]]
  agents: types.Distinct[str]
  num_steps: Count  # Environment steps, of four frames, of training.
  eval_every: Count  # Environment steps between two evaluations.
  num_seeds: ranges.PositiveInt
  # Environment steps of an evaluation, which ends with a game: 500,000 frames.
  eval_steps: Count = 125_000
  game_settings: str = ""  # Of all games, such as sticky=0.25.
  agent_settings: tuple[str, ...] = ()  # Of all agents, for quick versions.

  def __post_init__(self) -> None:
    super().__post_init__()
    if self.num_steps % self.eval_every:
      raise ValueError(
        f"num_steps is {self.num_steps}, no multiple of eval_every "
        f"({self.eval_every}); the last evaluation is at the end."
      )


def tasks(config: Config) -> list[types.Task]:
  """A task for each seed of each agent in each game."""
  settings = dataclasses.asdict(config)
  names = ("num_steps", "eval_every", "eval_steps", "game_settings", "agent_settings")
  same = {name: settings[name] for name in names}
  return [
    task
    for game in config.games
    for agent in config.agents
    for task in types.split(
      f"{agent}_{game}",
      {"agent": agent, "game": game, **same},
      config.num_seeds,
      seconds_per_seed=float(config.num_steps),
    )
  ]


def compute(settings: types.Settings) -> types.Results:
  """Trains one seed.

  Returns:
    `env_steps` of training before each of E evaluations, the mean `returns` of their
    episodes, and the same human-normalised as `scores`, each `[1, E]`.
  """
  (seed,), game = settings["seeds"], settings["game"]
  preset, changes = settings_lib.split_name(settings["agent"])
  game_settings = settings["game_settings"]
  trained = training.train(
    config_lib.RunConfig(
      agent=preset,
      settings=(*changes, *settings["agent_settings"]),
      env=f"atari:{atari_profiles.camel_case(game)}"
      + (f"/{game_settings}" if game_settings else ""),
      seed=seed,
      steps=settings["num_steps"],
      eval_every=settings["eval_every"],
      eval_steps=settings["eval_steps"],
    ),
  )
  evaluations = trained.evaluations[seed]
  returns = np.array([[each.mean_return for each in evaluations]])
  return {
    "env_steps": np.array([[each.env_steps for each in evaluations]], np.int64),
    "returns": returns,
    "scores": atari57.human_normalised_score(game, returns),
  }


def mean(scores: np.ndarray) -> np.floating[Any]:
  return np.mean(scores)


def median(scores: np.ndarray) -> np.floating[Any]:
  return np.median(scores)


def human_gap(scores: np.ndarray) -> np.floating[Any]:
  """1 − E[min(1, score)] (Dabney et al., 2021, appendix D)."""
  return 1 - np.mean(np.minimum(1, scores))


def over_games(of: OverGames, table: types.Table) -> np.ndarray:
  """A number over the games of one agent, at each evaluation of each seed, `[S, E]`."""
  scores = np.stack([game.joined("scores") for game in table.by_problem()], axis=-1)
  return np.apply_along_axis(of, -1, scores)


def final(of: OverGames, table: types.Table) -> np.ndarray:
  """The same of the last evaluation, `[S]`."""
  return over_games(of, table)[:, -1]


def lines(labels: Mapping[str, str]) -> layers.Lines:
  """Label → the selection of an agent, from agent → label."""
  return {label: {"agent": agent} for agent, label in labels.items()}


def within(games: Collection[str]) -> types.Selection:
  """The tasks of these games."""
  return {"game": games.__contains__}


def curves(
  title: str,
  labels: Mapping[str, str],
  games: Collection[str],
  of: OverGames = mean,
  ylabel: str = "mean human-normalised score",
) -> panels.Panel:
  """A number over games against frames of training, a line for each agent."""
  return panels.Panel(
    layers.Curves(functools.partial(over_games, of), lines(labels), _millions),
    where=within(games),
    title=title,
    legend="panel",
    xlabel="frames (millions)",
    ylabel=ylabel,
  )


def ends(title: str, labels: Mapping[str, str], games: Collection[str]) -> panels.Panel:
  """The mean over games at the end, a row for each agent."""
  return panels.Panel(
    layers.Rows(functools.partial(final, mean), lines(labels)),
    where=within(games),
    title=title,
    xlabel="mean human-normalised score",
    grid="x",
  )


def above(
  claim: str,
  agent: str,
  other: str,
  games: Collection[str],
  of: OverGames = mean,
  *,
  less: bool = False,
) -> claims.Compare:
  """That a number over games is greater (or less) for an agent at the end."""
  return claims.Compare(
    claim,
    functools.partial(final, of),
    {"agent": agent, **within(games)},
    {"agent": other, **within(games)},
    "{a:.3g} and {b:.3g}, a difference of {gap}",
    less=less,
  )


def _millions(table: types.Table) -> np.ndarray:
  return table[0].results["env_steps"][0] * _FRAMES / 1e6
