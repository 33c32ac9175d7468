"""Paper 3's agents on small problems; the paper itself has Atari games only."""

import dataclasses
from collections.abc import Sequence
from typing import Annotated, Any

import numpy as np

from explorax import exploration, ranges
from explorax.agents.bonuses import infogain
from explorax.environments import breakout, jax_environments
from explorax.experiments import presets
from explorax.papers import claims, layers, panels, types
from explorax.papers.tdu import episodes, runs

# The five agents of the paper's figure 2, by preset. Its bootstrapped DQN is that of
# Osband et al. (2016), whose members differ only in their initial weights.
AGENTS = {
  "double_dqn": "double DQN",
  "bootstrapped_dqn_no_prior": "bootstrapped DQN",
  "ensemble_voting": "voting",
  "ucb": "UCB",
  "ucb_infogain": "InfoGain",
}
_BASELINES = ("double_dqn", "bootstrapped_dqn_no_prior")
_WINDOW = 100  # Episodes; the paper's measure is the best mean of so many.
# The maximum number of steps in an episode of Breakout.
TIME_LIMIT = int(breakout.Breakout().default_params().time_limit)
# For the tasks' weights, measured on one core: seconds, and steps per second.
_SECONDS_TO_COMPILE = 15.0
_SPEED = {"deep_sea": 3000.0, "breakout": 1000.0}


@dataclasses.dataclass(frozen=True)
class Config(ranges.Checked):
  """Settings of the figure; those of the agents are in `agent_config`."""

  agents: types.Distinct[Annotated[str, ranges.OneOf(AGENTS)]] = tuple(AGENTS)
  num_members: types.Size = 10  # K (section 5).
  # Of the ensembles; 0 is none, as in the paper (Osband et al., 2018: 3).
  prior_scale: ranges.NonNegativeFloat = 0.0
  # N of Deep Sea, of which bsuite has the last.
  sizes: types.Distinct[types.Size] = (4, 6, 8, 10)
  max_episodes: ranges.PositiveInt = 2000  # In Deep Sea (bsuite: 10 000).
  # In Breakout. The schedules are Table 1's, whose runs have ten million.
  num_steps: int = 100_000
  num_points: types.Size = 50  # Of Breakout's curve.
  num_seeds: ranges.PositiveInt = 5  # Table 2 has 2.
  seeds_per_task: ranges.PositiveInt = 3  # Side by side.

  def __post_init__(self) -> None:
    super().__post_init__()
    check_points(self)


def check_points(config: Any) -> None:
  """Refuses runs in which no episode needs to end before a curve's point."""
  if config.num_steps < config.num_points * TIME_LIMIT:
    raise ValueError(
      f"num_steps is {config.num_steps}; it must be at least "
      f"{config.num_points * TIME_LIMIT}, the time limit for each point."
    )


def _tasks(config: Config) -> list[types.Task]:
  ensemble = {"num_members": config.num_members, "prior_scale": config.prior_scale}
  problems: dict[str, dict[str, Any]] = {
    f"deep_sea_{size}": {
      "problem": "deep_sea",
      "size": size,
      "max_episodes": config.max_episodes,
    }
    for size in config.sizes
  }
  game = {"num_steps": config.num_steps, "num_points": config.num_points}
  problems["breakout"] = {"problem": "breakout", **game}
  return [
    task
    for agent in config.agents
    for name, problem in problems.items()
    for task in types.split(
      f"{name}_{agent}",
      {"agent": agent, **ensemble, **problem},
      config.num_seeds,
      config.seeds_per_task,
      _seconds(problem),
    )
  ]


def _seconds(problem: types.Settings) -> float:
  steps = problem.get("num_steps") or problem["size"] * problem["max_episodes"]
  return _SECONDS_TO_COMPILE + steps / _SPEED[problem["problem"]]


def agent_config(settings: types.Settings, **changes: Any) -> Any:
  """The preset's config for small problems, with the settings' members and priors.

  Ensembles explore by the paper's rules, as on Atari: UCB with λ = 0.1. For image
  observations, the network starts with small convolutions. `temperature` in the
  settings is InfoGain's.
  """
  if settings.get("temperature"):
    changes["bonus"] = infogain.InfoGain(settings["temperature"])
  preset = presets.PRESETS[settings["agent"]]
  if settings["agent"] != "double_dqn":
    changes |= {name: settings[name] for name in ("num_members", "prior_scale")}
    changes["exploration"] = preset.config_for("atari:Breakout").exploration
  return dataclasses.replace(preset.config, **changes)


def _run(settings: types.Settings) -> types.Results:
  if settings["problem"] == "deep_sea":
    return runs.solve_deep_sea(settings, agent_config(settings))
  return play(settings)


def play(settings: types.Settings) -> types.Results:
  """Learns for `num_steps`: `curve` `[S, P]` and `best` `[S]`, see `means`.

  `environment` in the settings names an environment written in JAX; the default is
  Breakout.

  Table 1's schedules are scaled to `num_steps`: its numbers are shares of its ten
  million steps, or of the updates (one per four steps).
  """
  num_steps, seeds = settings["num_steps"], settings["seeds"]
  config = agent_config(
    settings,
    batch_size=32,
    updates_per_step=0.25,
    random_steps=num_steps // 200,
    min_replay_size=num_steps // 200,
    replay_capacity=num_steps // 10,
    target_update_period=max(1, num_steps // 1000),
  )
  if settings["agent"] == "double_dqn":
    rule = exploration.EpsilonGreedy(
      exploration.Piecewise((1.0, 0.1, 0.01), (num_steps // 10, num_steps // 2))
    )
    config = dataclasses.replace(config, exploration=rule)
  name = settings.get("environment", "breakout")
  environment, params = jax_environments.make(name)
  trained = runs.train(
    settings,
    config,
    environment,
    own_params=[params] * len(seeds),
    steps=num_steps,
  )
  found = []
  for seed in seeds:
    of_seed = trained.episodes[seed]
    ends, returns = [x.env_steps for x in of_seed], [x.episode_return for x in of_seed]
    found.append(means(ends, returns, points(settings)))
  return {
    "curve": np.stack([curve for curve, _ in found]),
    "best": np.array([best for _, best in found]),
  }


def points(settings: types.Settings) -> np.ndarray:
  """The steps of a curve's points: `[P]`, the last at the end of the run."""
  num_points = settings["num_points"]
  return np.arange(1, num_points + 1) * settings["num_steps"] // num_points


def means(
  ends: Sequence[int], returns: Sequence[float], at: np.ndarray
) -> tuple[np.ndarray, float]:
  """Means over 100 consecutive episodes, or over as many as there are.

  Args:
    ends: the steps at which episodes ended, rising.
    returns: of these episodes.
    at: `[P]`, steps; at least one episode has ended by each of them.

  Returns:
    The mean of the latest episodes at each of these steps, `[P]`; and the best mean.
  """
  sums = np.concatenate([[0.0], np.cumsum(returns)])
  last = np.searchsorted(ends, at, side="right")
  first = np.maximum(last - _WINDOW, 0)
  curve = (sums[last] - sums[first]) / (last - first)
  most = min(len(returns), _WINDOW)
  return curve, float(np.max(sums[most:] - sums[:-most]) / most)


def _panels(config: Config) -> list[list[panels.Panel]]:
  agents: layers.Lines = {label: {"agent": agent} for agent, label in AGENTS.items()}
  x = points(dataclasses.asdict(config)) / 1000
  breakout = {"problem": "breakout"}
  deep_sea = episodes.panel(
    agents,
    config.sizes,
    config.max_episodes,
    layers.two_to_the_n(config.sizes),
    dodge=1.03,
    where={"problem": "deep_sea"},
    title="Deep Sea (ours)",
    xlabel="size N",
  )
  return [
    [deep_sea],
    [
      panels.Panel(
        layers.Curves("curve", agents, x, thin={"linewidth": 1.6}),
        where=breakout,
        legend=None,
        title="Breakout by MinAtar's rules",
        xlabel="environment steps (thousands)",
        ylabel=f"bricks per episode (mean of {_WINDOW})",
        xlim=(0, None),
        ylim=(0, None),
      ),
      panels.Panel(
        layers.Rows("best", agents),
        where=breakout,
        grid="x",
        title="Breakout: best mean of a run",
        xlabel=f"bricks per episode (mean of {_WINDOW})",
        xlim=(0, None),
      ),
    ],
  ]


def _more_bricks(agent: str, other: str) -> types.Claim:
  return claims.Compare(
    "",
    "best",
    {"problem": "breakout", "agent": agent},
    {"problem": "breakout", "agent": other},
    f"bricks {{a:.1f}} and {{b:.1f}} ({AGENTS[other]}), a difference of {{gap}}",
    spec=".1f",
  )


def _fewer_episodes(agent: str, other: str) -> types.Claim:
  return episodes.fewer(
    "",
    {"problem": "deep_sea", "agent": agent},
    {"problem": "deep_sea", "agent": other},
    f"{AGENTS[agent]} and {AGENTS[other]}",
    "ours",
  )


def _claims(config: Config) -> list[types.Claim]:
  """The paper claims them for Atari; Deep Sea is our extension."""
  del config
  pairs = (
    ("ucb", _BASELINES),
    ("ensemble_voting", _BASELINES),
    ("ucb", ("ensemble_voting",)),
  )
  return [
    *(
      claims.All(
        f"{title}: {AGENTS[agent]} outperforms "
        + " and ".join(AGENTS[other] for other in others),
        [better(agent, other) for other in others],
      )
      for title, better in (("Breakout", _more_bricks), ("Deep Sea", _fewer_episodes))
      for agent, others in pairs
    ),
    claims.All(
      "InfoGain has no uniform benefit on top of UCB",
      [_more_bricks("ucb_infogain", "ucb"), _fewer_episodes("ucb_infogain", "ucb")],
      opposite=True,
    ),
  ]


FIGURES = (
  types.Figure(
    name="ucb/small",
    title="Exploration by Q-ensembles on small problems",
    source="Chen et al. (2017), UCB Exploration via Q-Ensembles; a figure of our own",
    claim="on Atari, ensemble voting outperforms double DQN and bootstrapped DQN, UCB "
    "exploration outperforms ensemble voting, and InfoGain has no uniform benefit on "
    "top of it. Here the same agents, with Atari's λ = 0.1, no priors and one torso "
    "of all heads, are on Breakout by MinAtar's rules, judged by the best "
    f"mean of {_WINDOW} consecutive episodes, and, as an extension of ours, on Deep "
    "Sea.",
    config=Config(),
    quick=Config(
      agents=("ucb",),
      sizes=(4,),
      max_episodes=50,
      num_steps=2000,
      num_points=2,
      num_seeds=1,
    ),
    tasks=_tasks,
    compute=_run,
    panels=_panels,
    claims=_claims,
    caption="Above: a mark is a run of a seed; a hollow one, at the limit, stands for "
    "all that were not solved. Lines join medians where more than half of the seeds "
    "solved. Below, left: means over seeds; right: seeds, their means and 95 % "
    "t-intervals.",
    height=3.2,
  ),
)
