"""Runs of paper 3's agents on Deep Sea and on Breakout."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from explorax import environments, exploration
from explorax.environments import breakout, deep_sea, jax_adapter
from explorax.experiments import presets
from explorax.experiments.figures import tdu_runs, types
from explorax.experiments.runners import device, local

# The five of the paper's figure 2, by preset. Its bootstrapped DQN is Osband et al.'s
# of 2016, whose members differ in their initial weights only.
AGENTS = {
  "double_dqn": "double DQN",
  "bootstrapped_dqn_no_prior": "bootstrapped DQN",
  "ensemble_voting": "ensemble voting",
  "ucb": "UCB exploration",
  "ucb_infogain": "UCB + InfoGain",
}
WINDOW = 100  # Consecutive episodes, of whose mean the best is the paper's measure.
# Steps, after which an episode of Breakout ends at the latest.
TIME_LIMIT = breakout.Breakout().default_params().time_limit


def agent_config(settings: types.Settings, **changes: Any) -> Any:
  """The preset's config; ensembles are heads on one torso, with double Q-learning.

  All other settings are the preset's, which are bsuite's for small problems; where
  observations are images, small convolutions come first.

  Args:
    settings: `agent`, a preset's name; `num_members` and `prior_scale`, of ensembles.
    **changes: more fields of the config.
  """
  if settings["agent"] != "double_dqn":
    changes |= {
      "num_members": settings["num_members"],
      "shared_torso": True,
      "prior_scale": settings["prior_scale"],
    }
  preset = presets.PRESETS[settings["agent"]]
  return dataclasses.replace(preset.config, target="double_q", **changes)


def run_deep_sea(settings: types.Settings, tick: types.Tick) -> types.Results:
  """`tdu_runs.solve` by bsuite's rule, in bsuite's Deep Sea of that `size`."""
  return tdu_runs.solve(
    settings,
    deep_sea.DeepSea(settings["size"], permuted=True),
    rule=environments.SolvedRule,
    is_bad=lambda episode: episode.metrics["bad_episode"],
    tick=tick,
    config=agent_config(settings),
  )


def run_breakout(settings: types.Settings, tick: types.Tick) -> types.Results:
  """Learns for so many steps.

  Table 1's schedules are stretched to `num_steps`: its numbers are taken as shares of
  its ten million steps, or of the updates, of which there is one for every fourth step.

  Args:
    settings: the agent's, `seeds`, `num_steps` and `num_points`.
    tick: told the share done, by steps.

  Returns:
    `curve` `[S, P]` and `best` `[S]`, see `means`.
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
  environment = breakout.Breakout()
  preset = presets.PRESETS[settings["agent"]]
  adapter = jax_adapter.JaxEnvironment(environment, seed=0)
  ends: dict[int, list[int]] = {seed: [] for seed in seeds}
  returns: dict[int, list[float]] = {seed: [] for seed in seeds}

  def count(seed: int, episode: local.Episode) -> None:
    ends[seed].append(episode.env_steps)
    returns[seed].append(episode.episode_return)

  def stop() -> bool:
    tick(
      min(1.0, max([0, *(steps[-1] for steps in ends.values() if steps)]) / num_steps)
    )
    return False

  results = device.train(
    preset.make_agent(config, environments.spec(adapter)),
    environment,
    seeds=seeds,
    num_steps=num_steps,
    on_episode=count,
    stop=stop,
  )
  if any(result.interrupted for result in results):
    raise types.InterruptedTaskError
  found = [means(ends[seed], returns[seed], points(settings)) for seed in seeds]
  return {
    "curve": np.stack([curve for curve, _ in found]),
    "best": np.array([best for _, best in found]),
  }


def points(settings: types.Settings) -> np.ndarray:
  """Steps at which Breakout's curve has its points: `[P]`, the last at the end."""
  num_points = settings["num_points"]
  return np.arange(1, num_points + 1) * settings["num_steps"] // num_points


def means(
  ends: Sequence[int], returns: Sequence[float], at: np.ndarray
) -> tuple[np.ndarray, float]:
  """Means over 100 consecutive episodes, or over as many as there are.

  Args:
    ends: the steps at which episodes ended, rising.
    returns: of these episodes.
    at: `[P]`, steps; an episode has ended by each of them.

  Returns:
    The mean of the latest ones at each of these steps, `[P]`; and the best of all.
  """
  sums = np.concatenate([[0.0], np.cumsum(returns)])
  last = np.searchsorted(ends, at, side="right")
  first = np.maximum(last - WINDOW, 0)
  curve = (sums[last] - sums[first]) / (last - first)
  most = min(len(returns), WINDOW)
  return curve, float(np.max(sums[most:] - sums[:-most]) / most)
