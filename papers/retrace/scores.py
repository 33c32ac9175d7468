"""Paper 5's targets on small games: figure 1, and with the best step sizes, by λ."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from explorax.environments import atari57
from explorax.experiments.runners import common
from explorax.papers import compute, draw, figures, judge, tuned

PAPER = "Munos et al. (2016), Safe and efficient off-policy reinforcement learning"
# The agents of figure 1: the preset, and the column of table 2.
AGENTS = {
  "Retrace(1)": ("retrace_dqn", "retrace"),
  "Tree-backup(1)": ("tree_backup_dqn", "tree_backup"),
  "Q-learning": ("one_step_dqn", "dqn"),
  "Q*(1)": ("harutyunyan_dqn", "q_star"),
}
_LAMBDAS = ("0.5", "0.9", "1")
_LABELS = [
  *(f"{name}({x})" for name in ("Retrace", "Tree-backup") for x in _LAMBDAS),
  "Q-learning",
  *(f"Q*({x})" for x in _LAMBDAS),
]
_TRIALS = 4  # Of table 2.
_WINDOWS = 10  # Parts of a run, each with a score.
# The figure shows two of them: at 40 and 200 of the paper's 200 million frames.
EARLY, LAST = 1, 9
_WHEN = {EARLY: "early", LAST: "at the end"}


class Game(NamedTuple):
  """A small game; in a race the only reward is 1 at a goal, which ends the episode."""

  env: str
  share: float  # Of the figure's steps.
  is_race: bool = False


GAMES = {
  "breakout": Game("jax:breakout", 1.0),
  "cartpole_swingup": Game("jax:cartpole_swingup", 0.6),
  "mountain_car": Game("jax:mountain_car,time_limit=1000", 0.5, is_race=True),
  "gridworld": Game("jax:gridworld/10", 0.3, is_race=True),
  "catch": Game("jax:catch", 0.2),
}
_AXES: dict[str, Any] = {"game": tuple(GAMES), "num_steps": 100_000}

# All results → label → scores `[S, games, 10]`, which have a common scale.
Scores = Callable[[figures.Table], Mapping[str, np.ndarray]]


def line(label: str) -> dict[str, Any]:
  """The settings of an agent of `AGENTS`, or of one with another λ: `Retrace(0.9)`."""
  name, _, lambda_ = label.rstrip(")").partition("(")
  agent, _ = AGENTS[f"{name}(1)" if lambda_ else name]
  return {"agent": agent, "changes": [f"target.lambda_={lambda_}"] if lambda_ else []}


def run(settings: figures.Settings) -> figures.Results:
  """Trains the seeds of a task with appendix F's exploration, on small networks.

  The schedules of ε have the paper's shares of a run: 50,000 frames of each of sixteen
  threads are 1/250 of 200 million frames. All agents, and the other seeds of a task,
  share the draw of its first seed. Every update uses 64 transitions. A perceptron
  replaces the convolutions.

  Returns:
    `scores` `[S, 10]`: of each tenth of the run, of the episodes that end in it.
  """
  game = GAMES[settings["game"]]
  steps = int(game.share * settings["num_steps"])
  epsilon = (
    f"Alternating(decay_steps={steps // 50},period_steps={steps // 250},"
    f"seed={settings['seeds'][0]})"
  )
  changes = [
    *settings["changes"],
    "torso=mlp",
    f"exploration=EpsilonGreedy({epsilon})",
    "batch_size=4",
    f"replay_capacity={steps // 10}",
    f"min_replay_size={steps // 100}",
  ]
  record = compute.train(
    {**settings, "changes": changes}, env=game.env, steps=steps, eval_episodes=0
  )
  scores = [window_scores(x, steps, game.is_race) for x in record.episodes.values()]
  return {"scores": np.stack(scores)}


def window_scores(
  episodes: Sequence[common.Episode], num_steps: int, is_race: bool
) -> np.ndarray:
  """A score of each tenth of a run, `[10]`.

  It is the mean return, or in a race the number of goals in a thousand steps, of the
  episodes that end in it; one that ends after the last step counts in the last tenth.
  """
  columns = [(x.env_steps, x.episode_return, x.episode_length) for x in episodes]
  ends, returns, lengths = np.array(columns, float).T
  # One that ends after the last step is in the last part.
  part = np.minimum((ends - 1) * _WINDOWS // num_steps, _WINDOWS - 1).astype(int)
  total = np.bincount(part, returns, minlength=_WINDOWS)
  if is_race:
    steps = np.bincount(part, lengths, minlength=_WINDOWS)
    return total / (np.maximum(steps, 1) / 1000)
  return total / np.bincount(part, minlength=_WINDOWS)


def _by_game(table: figures.Table) -> np.ndarray:
  """The scores of one agent, `[S, games, 10]`."""
  games = [table.joined("scores", game=x) for x in table.values("game")]
  return np.stack(games, axis=1)


def inter_algorithm_scores(scores: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
  """`z = (score − worst) / (best − worst)`, with worst and best over algorithms.

  If all are equal, all are the best: z is 1.

  Source: Munos et al. (2016), section 5, after Bellemare et al. (2013).
  """
  all_scores = np.stack([*scores.values()])
  worst, best = all_scores.min(axis=0), all_scores.max(axis=0)
  spread = np.where(best > worst, best - worst, 1.0)
  z = np.where(best > worst, (all_scores - worst) / spread, 1.0)
  return dict(zip(scores, z, strict=True))


def published() -> dict[str, np.ndarray]:
  """z of table 2: label → of 60 games, at 200 million frames."""
  scores = atari57.published("munos")
  return inter_algorithm_scores(
    {label: np.array([*scores[x].values()]) for label, (_, x) in AGENTS.items()}
  )


def _inter_algorithm(table: figures.Table) -> dict[str, np.ndarray]:
  """Of our runs, where each seed and tenth is compared by itself; see `Scores`."""
  return inter_algorithm_scores(
    {label: _by_game(table.where(**line(label))) for label in AGENTS}
  )


# -- tuning ---------------------------------------------------------------------------


def _method(agent: str, changes: list[str]) -> tuned.Method:
  return tuned.Method(agent, "learning_rate={:g}", (3e-4, 1e-3, 3e-3), tuple(changes))


_METHODS = {label: _method(**line(label)) for label in _LABELS}


def _then(table: figures.Table) -> list[figures.Grid]:
  """The runs that test.

  The seeds of a task share a draw of ε's schedules: these run alone, so that their
  differences are independent. Figure 1 has the seeds 0 to 4.
  """
  lines = tuned.lines(_METHODS, tuned.best(_tuning_scores(table)))
  return [figures.Grid(run, lines, _AXES, num_seeds=9, first_seed=300)]


def _normalised(table: figures.Table) -> Callable[[figures.Table], np.ndarray]:
  """One agent's runs → their scores, `[S, games, 10]`, of each tenth of the run.

  In each game, 0 and 1 are the worst and the best mean at the end of the tuning's runs,
  over all agents and step sizes, so that the tested runs do not affect the scale.
  """
  ends = []
  for label in table.values("method"):
    own = table.where(tuning=True, method=label)
    each = [_by_game(own.where(value=x)) for x in own.values("value")]
    ends += [x[:, :, LAST].mean(axis=0) for x in each]
  low, high = np.min(ends, axis=0)[:, None], np.max(ends, axis=0)[:, None]
  span = np.where(high > low, high - low, 1.0)
  return lambda runs: (_by_game(runs) - low) / span


def _tuning_scores(table: figures.Table) -> tuned.Scores:
  """The mean scores over seeds, games and the whole run."""
  normalised = _normalised(table)
  return tuned.scores(table, lambda runs: float(normalised(runs).mean()))


def tested(table: figures.Table) -> dict[str, np.ndarray]:
  """Of the runs with the best step sizes; see `Scores`."""
  tested = table.where(tuning=False)
  if not tested or len(tested) == len(table):  # Without some seed.
    return {}
  normalised = _normalised(table)
  return {x: normalised(tested.where(method=x)) for x in tested.values("method")}


# -- panels and claims ----------------------------------------------------------------


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Means(draw.Rows):
  """Rows of mean scores over games, in one of the tenths."""

  scores: Scores
  tenth: int

  def rows(self, table: figures.Table) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    means = {x: z[..., self.tenth].mean(axis=1) for x, z in self.scores(table).items()}
    return {label: (x, np.ones(len(x), bool)) for label, x in means.items()}


def _means(scores: Scores, labels: Sequence[str], xlabel: str) -> list[draw.Panel]:
  """Mean scores over games, early and at the end."""
  return [
    _Means(
      lines={label: {} for label in labels},
      x="scores",
      scores=scores,
      tenth=tenth,
      axes={"title": f"after {(tenth + 1) / _WINDOWS:.0%} of steps", "xlabel": xlabel},
    )
    for tenth in (EARLY, LAST)
  ]


def _above(scores: Scores, *compared: tuple[Any, ...]) -> judge.Claim:
  """That agents have greater mean scores than others.

  Each is (agent, other, tenth), with the claim's words if they are not the usual ones.
  """

  def compare(table: figures.Table) -> list[judge.Finding]:
    z, found = scores(table), []
    for a, b, tenth, *words in compared:
      if {a, b} <= {*z}:
        claim = "".join(words) or f"{a} is above {b} {_WHEN[tenth]}"
        x, y = (z[label][..., tenth] for label in (a, b))
        found.append(judge.above(claim, x, y, test=judge.paired, spec=".3f"))
    return found

  return compare


def _retrace_is_above(when: str, name: str, other: str, tenth: int) -> tuple[Any, ...]:
  return "Retrace(1)", other, tenth, f"small games: Retrace {when} above {name}"


# Of claims that agents, each with its best step size, are above others.
_FAMILIES = (
  (
    ("Retrace(1)", "Q-learning", EARLY),
    ("Retrace(1)", "Q-learning", LAST),
    ("Tree-backup(1)", "Q-learning", EARLY),
    ("Tree-backup(1)", "Q-learning", LAST),
    ("Retrace(1)", "Tree-backup(1)", EARLY),
    ("Retrace(1)", "Tree-backup(1)", LAST),
    ("Retrace(1)", "Q*(1)", LAST),
  ),
  (
    ("Retrace(1)", "Retrace(0.9)", LAST),
    ("Retrace(1)", "Retrace(0.5)", LAST),
    ("Tree-backup(1)", "Tree-backup(0.9)", LAST),
    ("Tree-backup(1)", "Tree-backup(0.5)", LAST),
    ("Q*(0.5)", "Q*(0.9)", LAST),
    ("Q*(0.5)", "Q*(1)", LAST),
  ),
)


def _most_best(table: figures.Table) -> judge.Finding:
  """Ties count for all."""
  del table
  best = {label: int(np.sum(z == 1.0)) for label, z in published().items()}
  num_games = len(published()["Q-learning"])
  words = ", ".join(f"{label} {number}" for label, number in best.items())
  ties = sum(best.values()) - num_games
  return judge.Finding(
    "Atari, table 2: Retrace is the best on most games",
    best.pop("Retrace(1)") > max(best.values()),
    _TRIALS,
    measured=f"best on, of {num_games}: {words}, {ties} of them tied",
  )


def _published_above(name: str, other: str) -> judge.Claim:
  """Of Retrace, over the games of table 2."""

  def compare(table: figures.Table) -> judge.Finding:
    del table
    claim, z = f"Atari, table 2: Retrace scores above {name}", published()
    test: Any = {"test": judge.wilcoxon, "spec": ".3f", "seeds": _TRIALS}
    return judge.above(claim, z["Retrace(1)"], z[other], **test)

  return compare


FIGURES = (
  figures.Figure(
    name="retrace/fig1",
    title="Retrace and its relatives: inter-algorithm scores on small games",
    source=f"{PAPER}, figure 1 and table 2",
    runs=[figures.Grid(run, [line(label) for label in AGENTS], _AXES)],
    # An episode of cartpole_swingup, the longest, must end in each tenth.
    quick={"game": ("gridworld", "catch"), "num_steps": 20_000, "num_seeds": 1},
    panels=[_means(_inter_algorithm, [*AGENTS], "mean inter-algorithm score")],
    claims=[
      _most_best,
      _published_above("Q-learning", "Q-learning"),
      _published_above("tree-backup", "Tree-backup(1)"),
      _above(
        _inter_algorithm,
        _retrace_is_above("starts", "Q-learning", "Q-learning", EARLY),
        _retrace_is_above("ends", "Q-learning", "Q-learning", LAST),
        _retrace_is_above("starts", "tree-backup", "Tree-backup(1)", EARLY),
        _retrace_is_above("ends", "tree-backup", "Tree-backup(1)", LAST),
        _retrace_is_above("ends", "Q*(1)", "Q*(1)", LAST),
      ),
    ],
    problem="game",
  ),
  figures.Figure(
    name="retrace/tuned",
    title="Retrace and its relatives, each with its best step size",
    source=f"Our own, of {PAPER}, figure 1",
    runs=[
      figures.Grid(
        *(run, tuned.lines(_METHODS), _AXES),
        first_seed=200,
        seeds_per_task=5,
      )
    ],
    then=_then,
    quick={
      "game": "gridworld",
      "method": ("Retrace(1)", "Tree-backup(1)", "Q-learning", "Q*(1)"),
      "value": 1e-3,
      "num_steps": 20_000,
      "num_seeds": 1,
    },
    panels=[_means(tested, _LABELS, "mean score")],
    claims=[judge.Holm([_above(tested, *family)]) for family in _FAMILIES],
    problem="game",
    table=lambda table: tuned.table(_tuning_scores(table), _METHODS),
  ),
)
