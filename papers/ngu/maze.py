"""Exploration of the Random Disco Maze: the share of positions that agents visit.

Paper 2's figure 2, and the variations that its tables 3 and 9 and its figures 10 to 13
test on Atari.
"""

import dataclasses
from typing import Annotated, Any

import numpy as np

from explorax import environments, ranges
from explorax.environments import disco_maze
from explorax.experiments import config as config_lib
from explorax.experiments import parts as parts_lib
from explorax.experiments import presets
from explorax.experiments import settings as settings_lib
from explorax.experiments.recording import statistics
from explorax.experiments.runners import common
from explorax.papers import claims, layers, panels, significance, training, types

# name → (label, preset, settings that differ from it)
_EIGHT = ("num_policies=8", "discount=0.997", "min_discount=0.99")  # γ: table 6.
_AGENTS: dict[str, tuple[str, str, tuple[str, ...]]] = {
  "learned": ("NGU", "ngu", ()),
  "random": ("random projections", "ngu", ("bonus.states=random",)),
  "rnd": ("RND", "r2d2_rnd", ()),
  "n8": ("N = 8", "ngu", _EIGHT),
  "n8_cmr": ("N = 8, CMR 0.5", "ngu", (*_EIGHT, "cross_mixture_ratio=0.5")),
  "no_rnd": ("without RND", "ngu", ("bonus.rnd=false",)),
  "k5": ("k = 5", "ngu", ("bonus.num_neighbors=5",)),
  "k30": ("k = 30", "ngu", ("bonus.num_neighbors=30",)),
  "l10": ("L = 10", "ngu", ("bonus.max_modulation=10",)),
  "beta02": ("β = 0.2", "ngu", ("beta=0.2",)),
  # What it learns has no effect.
  "uniform": (
    "uniformly random",
    "r2d2_rnd",
    ("evaluation_epsilon=1.0", "updates_per_step=0.001"),
  ),
  "three": ("M kept for 3 episodes", "ngu", ("bonus.episodes_per_memory=3",)),
}
_FIGURE_2 = ("learned", "random", "rnd")
_VARIANTS = tuple(name for name in _AGENTS if name not in ("random", "rnd", "uniform"))
# Makes the mazes of evaluations differ from those of training.
_EVALUATION_SEED = 1000
_RANDOM = 0.1  # The share that a policy at random visits, over 4,000 episodes.


@dataclasses.dataclass(frozen=True)
class Config(ranges.Checked):
  """Settings; all others are the presets', from paper 2's tables 6 and 7.

  Smaller values than the paper's reduce a seed's time to minutes on one core.
  """

  size: int = 7  # 21 in the paper; 17 positions can be reached, against 199.
  agents: types.Distinct[Annotated[str, ranges.OneOf(_AGENTS)]] = _FIGURE_2
  num_steps: ranges.PositiveInt = (
    40_000  # Environment steps of training; not in the paper.
  )
  # Episodes in a small maze are short: longer sequences would be mostly padding.
  sequence_length: int = 5  # 50 in the paper (table 7).
  sequence_period: int = 5  # 50 in the paper (table 7).
  batch_size: int = 32  # Sequences; 64 in the paper (table 6).
  updates_per_step: float = 0.1  # Learner updates per environment step; ours.
  min_replay_size: int = 2_000  # Environment steps before learning; ours.
  eval_every: ranges.PositiveInt = (
    10_000  # Environment steps between two evaluations; ours.
  )
  eval_episodes: ranges.PositiveInt = 50  # Episodes of an evaluation; ours.
  num_seeds: ranges.PositiveInt = 10  # Not in the paper.
  baseline_seeds: ranges.PositiveInt = 10  # Of NGU with its own settings.

  def __post_init__(self) -> None:
    super().__post_init__()
    disco_maze.DiscoMaze(self.size)  # Refuses impossible sizes.
    if self.num_steps < self.eval_every:
      raise ValueError(
        f"num_steps is {self.num_steps} and eval_every {self.eval_every}; there would "
        "be no evaluation before the end: lower eval_every."
      )


def agent_config(settings: types.Settings) -> Any:
  """The preset's config for the maze, changed by the settings."""
  _, preset, changes = _AGENTS[settings["agent"]]
  names = (
    "sequence_length",
    "sequence_period",
    "batch_size",
    "updates_per_step",
    "min_replay_size",
  )
  config = presets.PRESETS[preset].config_for(f"jax:disco_maze/{settings['size']}")
  given = {change.partition("=")[0] for change in changes}
  same = [f"{x}={settings[x]}" for x in names if x not in given]
  # The most exploratory policy is evaluated: there is nothing else to do in a maze.
  same.append("evaluation_policy=-1")
  # No more than a run fills, because sampling computes over replay's whole capacity.
  same.append(f"replay_capacity={settings['num_steps']}")
  if preset == "ngu":
    # Enough for three episodes at the maze's time limit, and no more, because the
    # search for neighbours computes over the memory's whole capacity.
    same.append(f"bonus.memory_capacity={3 * (2 * settings['size'] ** 2 + 1)}")
  return settings_lib.apply(config, [*same, *changes])


def _tasks(config: Config, first_seed: int = 0) -> list[types.Task]:
  settings = dataclasses.asdict(config)
  del settings["num_seeds"], settings["agents"], settings["baseline_seeds"]
  seeds = dict.fromkeys(_AGENTS, config.num_seeds) | {"learned": config.baseline_seeds}
  return [
    task
    for agent in config.agents
    for task in types.split(
      agent, {**settings, "agent": agent}, seeds[agent], first_seed=first_seed
    )
  ]


def _run(settings: types.Settings) -> types.Results:
  """Trains a seed; in evaluations the policy is greedy, as in table 7.

  Returns:
    `env_steps` and `coverage` of the E evaluations, `[1, E]`; `training_coverage` of
    all training episodes.
  """
  maze, (seed,) = disco_maze.DiscoMaze(settings["size"]), settings["seeds"]
  environment = environments.wrap(maze, seed=seed)
  preset = presets.PRESETS[_AGENTS[settings["agent"]][1]]
  agent = preset.make_agent(agent_config(settings), environments.spec(environment))
  trained = training.train(
    config_lib.RunConfig(
      runner="device",
      seed=seed,
      steps=settings["num_steps"],
      eval_every=settings["eval_every"],
      eval_episodes=settings["eval_episodes"],
    ),
    parts_lib.CallerObjects(
      agent, environment, environments.wrap(maze, seed=seed + _EVALUATION_SEED)
    ),
  )
  evaluations = trained.evaluations[seed]
  coverage = [np.mean([_coverage(x) for x in each.episodes]) for each in evaluations]
  return {
    "env_steps": np.array([[each.env_steps for each in evaluations]], np.int64),
    "coverage": np.array([coverage], np.float64),
    "training_coverage": np.array([[*map(_coverage, trained.episodes[seed])]], "f4"),
  }


def _coverage(episode: common.Episode | common.EvaluationEpisode) -> float:
  return episode.metrics["coverage"]


def _lines(config: Config) -> layers.Lines:
  return {_AGENTS[agent][0]: {"agent": agent} for agent in config.agents}


def _curves(config: Config) -> panels.Panel:
  return panels.Panel(
    layers.Curves(
      "coverage",
      _lines(config),
      # After the same steps of each seed.
      lambda table: table.joined("env_steps")[0],
      markers=True,
    ),
    layers.horizontal(1, linestyle="--"),
    layers.horizontal(_RANDOM, linestyle=":"),
    legend="direct",
    xlabel="environment steps",
    ylabel="share of positions visited",
    ylim=(0, 1.05),
  )


def _last(table: types.Table) -> np.ndarray:
  """The share of positions in the last evaluation, `[S]`."""
  return table.joined("coverage")[:, -1]


def _explores_more(
  claim: str,
  agent: str,
  other: str,
  kind: types.Kind | None = None,
  test: significance.Test = significance.unpaired,
) -> claims.Compare:
  return claims.Compare(
    claim,
    _last,
    {"agent": agent},
    {"agent": other},
    "share of positions in the last evaluation {a:.3g} and {b:.3g}, a difference of "
    "{gap}",
    spec=".3g",
    test=test,
    kind=kind,
  )


def _goes_on(table: types.Table) -> types.Finding | None:
  """That NGU still learns after the steps of figure 2."""
  if not (learned := table.where(agent="learned")):
    return None
  steps, coverage = learned.joined("env_steps")[0], learned.joined("coverage")
  early = coverage[:, np.argmin(np.abs(steps - Config().num_steps))]
  return claims.compare(
    f"NGU explores more at the end than after {Config().num_steps:,} steps",
    _last(learned),
    early,
    "share of positions {a:.3g} and {b:.3g}, a difference of {gap}",
    spec=".3g",
    test=significance.paired,
    kind="ours",
  )


def _explores_nearly_all(table: types.Table) -> tuple[str, bool | None]:
  """Undecided if it does not: the steps may be too few."""
  interval, (steps,) = statistics.mean(_last(table)), table.values("num_steps")
  share = f"share of positions {interval.to_text()}"
  words = f"{share} after {steps:,} steps, which may be too few"
  return words, interval.is_above(0.8) or None


_NEARLY_ALL = claims.Check(
  "with learned states, nearly any maze is explored (at least 0.8 of it)",
  _explores_nearly_all,
  {"agent": "learned"},
  test="t-interval",
)


# (claim, agent that should be better, agent that should be worse, kind). Most claims
# are from the paper's text on Atari. Of N it claims that policy 0 earns more with
# N = 32 than with 1, which is not tested here; on Atari, a β of 0.3 is better than 0.2
# and 0.5, and the paper does not compare memories.
_CLAIMS: tuple[tuple[Any, ...], ...] = (
  ("sharing experience between policies (CMR) harms", "n8", "n8_cmr"),
  ("RND's factor is beneficial", "learned", "no_rnd"),
  ("k = 10 is better than 5", "learned", "k5"),
  ("k = 10 is better than 30", "learned", "k30"),
  ("a larger L is better", "l10", "learned"),
  ("the most exploratory of 8 policies covers more than one", "n8", "learned", "ours"),
  ("the maze's β of 0.5 is better than 0.2", "learned", "beta02", "ours"),
  ("a memory of one episode is better than of 3", "learned", "three", "ours"),
)


_QUICK = Config(
  size=5,
  agents=("learned", "rnd"),
  num_steps=300,
  min_replay_size=100,
  batch_size=4,
  eval_every=150,
  eval_episodes=2,
  num_seeds=1,
  baseline_seeds=1,
)

FIGURES = (
  types.Figure(
    name="ngu/fig2",
    title="Random Disco Maze: the share of positions visited in an episode",
    source="Badia et al. (2020), Never Give Up, figure 2",
    claim="with learned controllable states the agent learns to explore any maze; with "
    "random projections, and with RND, it only learns to stay alive.",
    config=Config(),
    quick=_QUICK,
    tasks=_tasks,
    compute=_run,
    panels=lambda config: [[_curves(config)]],
    claims=lambda config: [
      _explores_more(
        "learned controllable states explore more than random projections",
        "learned",
        "random",
        test=significance.paired,
      ),
      _explores_more(
        "learned controllable states explore more than RND",
        "learned",
        "rnd",
        test=significance.paired,
      ),
      _NEARLY_ALL,
    ],
    caption="The most exploratory policy, acting greedily, in mazes of 7 × 7. Lines: "
    "means; bands: 95 % bootstrap intervals. Dashed: the whole maze; dotted: a policy "
    f"at random ({_RANDOM:g}).",
    height=3.6,
  ),
  types.Figure(
    name="ngu/variants",
    title="Never Give Up's settings in the Random Disco Maze",
    source="Our own, of settings that Badia et al. (2020), Never Give Up, vary on "
    "Atari in tables 3 and 9 and figures 10 to 13",
    claim="on games that are hard to explore, RND's factor and more policies are "
    "beneficial, shared experience (CMR) harms slightly, k = 10 is better than 5 and "
    "30, and the largest L works best (Montezuma's Revenge). (Here eight policies "
    "share the steps of one actor; in the paper 256 actors act.)",
    config=Config(agents=_VARIANTS, num_seeds=5),
    quick=dataclasses.replace(_QUICK, agents=("n8", "n8_cmr")),
    tasks=_tasks,
    compute=_run,
    panels=lambda config: [
      [
        panels.Panel(
          layers.Rows(_last, _lines(config)),
          layers.vertical(_RANDOM, linestyle=":"),
          grid="x",
          xlabel="share of positions visited in the last evaluation",
          xlim=(0, 1.02),
        )
      ]
    ],
    claims=lambda config: [_explores_more(*claim) for claim in _CLAIMS],
    caption="The most exploratory policy, acting greedily, in mazes of 7 × 7. Small "
    "marks: seeds, ten of NGU and five of the others; large ones: means with 95 % "
    f"t-intervals. Dotted: a policy at random ({_RANDOM:g}).",
    height=3.6,
  ),
  types.Figure(
    name="ngu/long",
    title="Random Disco Maze: longer runs of Never Give Up, and uniform actions",
    source="Our own, of Badia et al. (2020), Never Give Up, figure 2",
    claim="with learned controllable states the agent learns to explore any maze.",
    config=Config(
      agents=("learned", "uniform"),
      num_steps=200_000,
      eval_every=20_000,
      num_seeds=8,
      baseline_seeds=8,
    ),
    quick=dataclasses.replace(_QUICK, agents=("learned", "uniform")),
    tasks=lambda config: _tasks(config, first_seed=100),  # Figure 2 has 0 to 4.
    compute=_run,
    panels=lambda config: [[_curves(config)]],
    # The first two tests are corrected by Holm's method.
    claims=lambda config: [
      *claims.corrected(
        [
          _explores_more(
            "learned controllable states explore more than uniform actions",
            "learned",
            "uniform",
            "ours",
            significance.paired,
          ),
          _goes_on,
        ]
      ),
      _NEARLY_ALL,
    ],
    caption="The most exploratory policy, acting greedily, in mazes of 7 × 7. Lines: "
    "means; bands: 95 % bootstrap intervals. Dashed: the whole maze.",
    height=3.6,
    large=True,
  ),
)
