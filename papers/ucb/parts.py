"""Which parts of an ensemble explore Deep Sea: rule, networks, priors, or a bonus.

Rules that act on ten members (UCB and voting) are crossed with shared or separate
networks and with priors; the agents of paper 4's figure 2, of twenty separate networks,
are crossed with priors.
"""

import dataclasses
import functools
from typing import Annotated

from explorax import ranges
from explorax.experiments import presets
from explorax.papers import claims, layers, panels, types
from explorax.papers.tdu import deep_sea, episodes, runs

_OF_HEADS = ("ucb", "ensemble_voting")
_SEPARATE = {
  "tdu": "TDU",
  "bootstrapped_dqn": "bootstrapped DQN",
  "qu": "QU",
  "q_ucb": "Q+UCB",
}
_VERSIONS = (False, True)  # Whether Deep Sea is stochastic.


@dataclasses.dataclass(frozen=True)
class Config(ranges.Checked):
  """Settings of the figure; all others are the presets'."""

  agents: types.Distinct[Annotated[str, ranges.OneOf((*_OF_HEADS, *_SEPARATE))]] = (
    *_OF_HEADS,
    *_SEPARATE,
  )
  sizes: types.Distinct[types.Size] = (6, 10, 14)  # N.
  # λ of UCB; paper 3 has the first, on Atari.
  scales: types.Rising[ranges.PositiveFloat] = (0.1, 1.0, 10.0)
  prior_scales: types.Rising[ranges.NonNegativeFloat] = (0.0, 3.0)
  max_episodes: ranges.PositiveInt = 1000  # bsuite: 10 000.
  first_seed: ranges.Seed = 100  # Other figures have seeds from 0.
  num_seeds: ranges.PositiveInt = 10
  seeds_per_task: ranges.PositiveInt = 10  # They run in one program.


def _agents(config: Config) -> dict[str, types.Settings]:
  parts = [
    (agent, scale, shared)
    for agent in config.agents
    for scale in (config.scales if agent == "ucb" else (None,))
    for shared in ((True, False) if agent in _OF_HEADS else (False,))
  ]
  return {
    f"{agent}{scale or ''}_{'shared' if shared else 'separate'}_prior{prior:g}": {
      "agent": agent,
      "scale": scale,
      "shared_torso": shared,
      "prior_scale": prior,
    }
    for agent, scale, shared in parts
    for prior in config.prior_scales
  }


def _label(agent: types.Settings) -> str:
  rule = _SEPARATE.get(agent["agent"], "voting")
  if agent["scale"] is not None:
    rule = f"UCB, λ = {agent['scale']:g}"
  torso = ", one torso" if agent["shared_torso"] else ""
  return f"{rule}{torso}{', priors' if agent['prior_scale'] else ''}"


def _compute(settings: types.Settings) -> types.Results:
  config = presets.PRESETS[settings["agent"]].config
  changes = {name: settings[name] for name in ("shared_torso", "prior_scale")}
  if settings["scale"] is not None:
    rule = dataclasses.replace(config.exploration, scale=settings["scale"])
    changes["exploration"] = rule
  config = dataclasses.replace(config, **changes)
  return runs.solve_deep_sea(settings, config)


def _panels(config: Config) -> list[list[panels.Panel]]:
  lines: layers.Lines = {_label(agent): agent for agent in _agents(config).values()}
  return [
    [
      episodes.rows(
        lines,
        config.max_episodes,
        where={"size": size, "stochastic": stochastic},
        xlabel="episodes until it is solved" if stochastic else "",
        title=f"N = {size}, {'stochastic' if stochastic else 'deterministic'}",
        **({} if size == config.sizes[0] else {"yticklabels": []}),
      )
      for size in config.sizes
    ]
    for stochastic in _VERSIONS
  ]


def _claims(config: Config) -> list[types.Claim]:
  """Two families of tests, each corrected by Holm's method: ours, and paper 4's."""
  least, most = (
    {"prior_scale": x} for x in (min(config.prior_scales), max(config.prior_scales))
  )
  ucb = {"agent": "ucb"}
  of_heads = {"agent": lambda agent: agent in _OF_HEADS}
  ours = functools.partial(episodes.fewer, kind="ours")
  tdu, bootstrapped, qu, q_ucb = ({"agent": agent, **most} for agent in _SEPARATE)
  names = "TDU and bootstrapped DQN, with priors"
  return [
    *claims.corrected(
      [
        ours(
          "priors make these agents, pooled, explore",
          most,
          least,
          "with and without priors",
        ),
        ours(
          "separate networks explore more than heads on one torso (UCB and voting)",
          {**of_heads, "shared_torso": False},
          {**of_heads, "shared_torso": True},
          "separate networks and one torso",
        ),
        ours(
          f"UCB with λ = {config.scales[-1]:g} explores more than with Atari's "
          f"{config.scales[0]:g}",
          {**ucb, "scale": config.scales[-1]},
          {**ucb, "scale": config.scales[0]},
          f"λ = {config.scales[-1]:g} and {config.scales[0]:g}",
        ),
        ours(
          "UCB with Atari's λ explores more than voting, on the same networks",
          {**ucb, "scale": config.scales[0]},
          {"agent": "ensemble_voting"},
          "UCB and voting",
        ),
      ]
    ),
    *claims.corrected(
      [
        episodes.fewer(
          "priors are instrumental for TDU",
          tdu,
          {**tdu, **least},
          "TDU with and without priors",
        ),
        *(
          episodes.fewer(
            f"TDU is faster than bootstrapped DQN, {version}",
            {**tdu, "stochastic": stochastic},
            {**bootstrapped, "stochastic": stochastic},
            names,
          )
          for version, stochastic in (("deterministic", False), ("stochastic", True))
        ),
        deep_sea.suffers_from_noise(
          "bootstrapped DQN with priors suffers where Deep Sea is stochastic",
          [bootstrapped],
        ),
        episodes.fewer("QU does not match TDU", tdu, qu, "TDU and QU, with priors"),
        episodes.fewer(
          "Q+UCB does not match TDU", tdu, q_ucb, "TDU and Q+UCB, with priors"
        ),
      ]
    ),
  ]


FIGURES = (
  types.Figure(
    name="ucb/parts",
    title="Deep Sea: which parts of an ensemble explore",
    source="Our own, of Chen et al. (2017), UCB Exploration via Q-Ensembles, and of "
    f"{runs.PAPER}, figure 2",
    claim="paper 4: priors are instrumental, TDU does better than bootstrapped DQN, "
    "which loses on the stochastic version, and the same uncertainty of values (QU, "
    "Q+UCB) does not match it. Paper 3 has one torso, no priors and λ = 0.1 on Atari; "
    "whether its rules explore with other networks is our question.",
    config=Config(),
    quick=Config(
      agents=("ucb", "tdu"),
      sizes=(4,),
      scales=(1.0,),
      prior_scales=(3.0,),
      max_episodes=50,
      num_seeds=1,
    ),
    tasks=lambda config: runs.deep_sea_tasks(
      _agents(config),
      config.sizes,
      _VERSIONS,
      range(config.first_seed, config.first_seed + config.num_seeds),
      max_episodes=config.max_episodes,
      seeds_per_task=config.seeds_per_task,
    ),
    compute=_compute,
    panels=_panels,
    claims=_claims,
    caption="A mark is a run of a seed; a hollow one, at the limit, stands for all "
    "that were not solved. On the right: the number of runs solved, by the treasure. "
    "Ten members, and twenty of the last four agents.",
    height=4.4,
    large=True,
  ),
)
