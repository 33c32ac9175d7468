"""Paper 5's figure 1: inter-algorithm scores on its games and on small ones."""

import dataclasses
from collections.abc import Mapping
from typing import Annotated, Any, NamedTuple

import numpy as np

from explorax import exploration, ranges
from explorax.agents.targets import off_policy
from explorax.environments import atari57, jax_environments
from explorax.experiments import presets
from explorax.experiments.recording import drawing
from explorax.experiments.runners import common
from explorax.papers import algorithms, claims, layers, panels, significance, types
from explorax.papers.tdu import runs

# The figure's four agents, by preset: the column of table 2, and the label.
AGENTS = {
  "retrace_dqn": ("retrace", "Retrace(1)"),
  "tree_backup_dqn": ("tree_backup", "Tree-backup(1)"),
  "one_step_dqn": ("dqn", "Q-learning"),
  "harutyunyan_dqn": ("q_star", "Q*(1)"),
}
_TRIALS = 4  # Of table 2.
_WINDOWS = 10  # Parts of a run, each with a score.
# The figure shows two of them: at 40 and 200 of the paper's 200 million frames.
EARLY, LAST = 1, 9


class Game(NamedTuple):
  """A small game.

  Attributes:
    environment: its name, without `jax:`.
    share: the share of the figure's steps that a run takes.
    speed: steps per second on one core, for the tasks' weights.
    is_race: whether its only reward is 1 at a goal, which ends the episode. Then the
      score is the number of goals in a thousand steps, else the mean return.
  """

  environment: str
  share: float
  speed: float
  is_race: bool = False


GAMES = {
  "breakout": Game("breakout", 1.0, 4500),
  "cartpole_swingup": Game("cartpole_swingup", 0.6, 7500),
  "mountain_car": Game("mountain_car,time_limit=1000", 0.5, 7500, is_race=True),
  "gridworld": Game("gridworld/10", 0.3, 5000, is_race=True),
  "catch": Game("catch", 0.2, 5000),
}
_LONGEST = 1000  # Steps of an episode.


@dataclasses.dataclass(frozen=True)
class Config(ranges.Checked):
  """Settings of our own runs; those of the agents are in `agent_config`."""

  games: types.Distinct[Annotated[str, ranges.OneOf(GAMES)]] = tuple(GAMES)
  # Of a run. At least one episode of cartpole_swingup, the longest, must end in each
  # tenth.
  num_steps: Annotated[int, ranges.Range(ge=2 * _WINDOWS * _LONGEST)] = 100_000
  num_seeds: ranges.PositiveInt = 5


def _tasks(config: Config) -> list[types.Task]:
  tasks = []
  for game in config.games:
    steps = int(GAMES[game].share * config.num_steps)
    for agent in AGENTS:
      tasks += types.split(
        f"{game}_{agent}",
        {"game": game, "agent": agent, "num_steps": steps},
        config.num_seeds,
        seconds_per_seed=15.0 + steps / GAMES[game].speed,
      )
  return tasks


def agent_config(settings: types.Settings) -> Any:
  """The preset's config for small problems, with appendix F's exploration.

  The schedules of ε have the paper's shares of a run: 50,000 frames of each of sixteen
  threads are 1/250 of 200 million frames. All agents, and the other
  seeds of a task, share the draw of its first seed. Every update uses 64 transitions,
  and λ is 1 unless the settings have another. A perceptron replaces the convolutions.
  """
  steps = settings["num_steps"]
  config = presets.PRESETS[settings["agent"]].config
  if isinstance(config.target, off_policy.OffPolicy):
    target = dataclasses.replace(config.target, lambda_=settings.get("lambda", 1.0))
    config = dataclasses.replace(config, target=target)
  if "learning_rate" in settings:
    config = dataclasses.replace(config, learning_rate=settings["learning_rate"])
  epsilon = exploration.Alternating(
    decay_steps=steps // 50, period_steps=steps // 250, seed=settings["seeds"][0]
  )
  return dataclasses.replace(
    config,
    torso="mlp",
    exploration=exploration.EpsilonGreedy(epsilon),
    batch_size=4,
    replay_capacity=steps // 10,
    min_replay_size=steps // 100,
  )


def run(settings: types.Settings) -> types.Results:
  """`scores` `[S, 10]`: of each tenth of the run, of the episodes that end in it."""
  game, steps, seeds = GAMES[settings["game"]], settings["num_steps"], settings["seeds"]
  environment, params = jax_environments.make(game.environment)
  episodes = runs.train(
    settings,
    agent_config(settings),
    environment,
    own_params=[params] * len(seeds),
    steps=steps,
  ).episodes
  return {
    "scores": np.stack([window_scores(episodes[s], steps, game.is_race) for s in seeds])
  }


def window_scores(
  episodes: list[common.Episode], num_steps: int, is_race: bool
) -> np.ndarray:
  """A score of each tenth of a run, float `[10]`; see `Game.is_race`.

  An episode counts where it ends; one that ends after the last step is in the last
  tenth.
  """
  ends, returns, lengths = (
    np.array([getattr(episode, name) for episode in episodes], np.float64)
    for name in ("env_steps", "episode_return", "episode_length")
  )
  window = np.minimum((ends - 1) * _WINDOWS // num_steps, _WINDOWS - 1)
  scores = np.empty(_WINDOWS)
  for i in range(_WINDOWS):
    within = window == i
    by = max(np.sum(lengths[within]), 1) / 1000 if is_race else np.sum(within)
    scores[i] = np.sum(returns[within]) / by
  return scores


def published() -> dict[str, dict[str, float]]:
  """Table 2: agent → game → final score, of 60 games at 200 million frames."""
  scores = atari57.published("munos")
  return {agent: scores[column] for agent, (column, _) in AGENTS.items()}


Scores = Mapping[str, np.ndarray]  # Agent → inter-algorithm scores `[S, games]`.


def _published_z() -> Scores:
  """Of table 2, with an axis for the seeds: `[1, 60]`."""
  z = algorithms.inter_algorithm_scores(published())
  return {agent: np.array([list(games.values())]) for agent, games in z.items()}


def _own_z(window: int, table: types.Table) -> Scores:
  """Of our runs, separate for each seed."""
  games = table.values("game")
  scores = {
    agent: np.stack(
      [table.joined("scores", game=g, agent=agent)[:, window] for g in games], axis=1
    )
    for agent in AGENTS
  }
  by_seed = [
    algorithms.inter_algorithm_scores(
      {agent: dict(zip(games, x[seed], strict=True)) for agent, x in scores.items()}
    )
    for seed in range(min(map(len, scores.values())))
  ]
  return {
    agent: np.array([list(z[agent].values()) for z in by_seed]) for agent in scores
  }


def draw_z(axes: types.Axes, z: Scores) -> None:
  """A row for each label: its seeds' mean scores over the games."""
  styles = drawing.styles([*z])
  for row, (label, scores) in enumerate(z.items()):
    layers.draw_row(axes, row, scores.mean(axis=1), styles[label])
  axes.set_yticks(range(len(z)), list(z))
  axes.set_ylim(len(z) - 0.5, -0.5)


def _panels(config: Config) -> list[list[panels.Panel]]:
  lines = {label: {"agent": agent} for agent, (_, label) in AGENTS.items()}

  def scores(window: int) -> panels.Panel:
    def draw_rows(axes: types.Axes, table: types.Table) -> None:
      z = _own_z(window, table)
      draw_z(axes, {label: z[agent] for agent, (_, label) in AGENTS.items()})

    share = f"{(window + 1) / _WINDOWS:.0%} of the steps"
    return panels.Panel(
      draw_rows,
      title=f"{len(config.games)} small games, after {share}",
      grid="x",
      legend=None,
      xlabel="mean inter-algorithm score",
      xlim=(0, 1.1),
    )

  hidden: dict[str, Any] = {"yticklabels": []}
  games = [
    panels.Panel(
      layers.Rows(lambda table: table.joined("scores")[:, LAST], lines),
      where={"game": game},
      grid="x",
      legend=None,
      title=game.replace("_", " "),
      xlabel="goals in 1,000 steps" if GAMES[game].is_race else "return",
      **(hidden if i else {}),
    )
    for i, game in enumerate(config.games)
  ]
  return [[scores(EARLY), scores(LAST)], games]


def times_best(scores: dict[str, dict[str, float]]) -> dict[str, int]:
  """Agent → the number of games on which no other is better; ties count for all."""
  games = next(iter(scores.values()))
  best = {game: max(own[game] for own in scores.values()) for game in games}
  return {a: sum(own[g] == best[g] for g in games) for a, own in scores.items()}


def _most_best(table: types.Table) -> types.Finding:
  del table
  best = times_best(published())
  words = ", ".join(f"{label} {best[agent]}" for agent, (_, label) in AGENTS.items())
  num_games = len(published()["retrace_dqn"])
  return types.Finding(
    "Atari, table 2: Retrace is the best on most games",
    f"best on, of {num_games}: {words}, {sum(best.values()) - num_games} of them tied",
    best["retrace_dqn"] > max(n for a, n in best.items() if a != "retrace_dqn"),
    _TRIALS,
    "published",
    "counted",
  )


def _above(claim: str, other: str, window: int | None) -> types.Claim:
  """That Retrace's mean inter-algorithm score is above another agent's.

  Both are normalised together, so that the test is of their differences: over the seeds
  of our runs, or over the games of table 2 (`window` None).
  """

  def compare(table: types.Table) -> types.Finding:
    if window is None:
      z: Scores = {agent: x.T for agent, x in _published_z().items()}
    else:
      z = _own_z(window, table)
    words = "mean inter-algorithm scores {a:.3g} and {b:.3g}, a difference of {gap}"
    finding = claims.compare(
      claim,
      z["retrace_dqn"],
      z[other],
      words,
      spec=".3f",
      test=significance.wilcoxon if window is None else significance.paired,
      kind="published" if window is None else None,
      games=() if window is None else table.values("game"),
    )
    return finding._replace(num_seeds=_TRIALS) if window is None else finding

  return compare


_CLAIMS = (
  _most_best,
  _above("Atari, table 2: Retrace scores above Q-learning", "one_step_dqn", None),
  _above("Atari, table 2: Retrace scores above tree-backup", "tree_backup_dqn", None),
  _above("small games: Retrace starts above Q-learning", "one_step_dqn", EARLY),
  _above("small games: Retrace ends above Q-learning", "one_step_dqn", LAST),
  _above("small games: Retrace starts above tree-backup", "tree_backup_dqn", EARLY),
  _above("small games: Retrace ends above tree-backup", "tree_backup_dqn", LAST),
  _above("small games: Retrace ends above Q*(1)", "harutyunyan_dqn", LAST),
)


FIGURES = (
  types.Figure(
    name="retrace/fig1",
    title="Retrace and its relatives: inter-algorithm scores",
    source="Munos et al. (2016), Safe and efficient off-policy reinforcement learning, "
    "figure 1 and table 2",
    claim="at λ = 1, Retrace and tree-backup score far above Q-learning early on and "
    "stay ahead; Retrace has a narrower advantage over tree-backup, and Q*(1) "
    "diverges. Here the same agents are on small games, where each seed's scores are "
    "normalised by themselves.",
    config=Config(),
    quick=Config(games=("gridworld", "catch"), num_steps=20_000, num_seeds=1),
    tasks=_tasks,
    compute=run,
    panels=_panels,
    claims=lambda config: _CLAIMS,
    caption="Small marks are seeds, large ones their means with 95 % t-intervals. "
    "Above: mean inter-algorithm scores over the games. Below: the scores of the games "
    "in the last tenth of a run.",
    height=2.2,
  ),
)
