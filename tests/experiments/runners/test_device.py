"""The device runner: the rows, the updates and the pace of the local one."""

import dataclasses
import logging

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from explorax import environments, exploration
from explorax.agents import types
from explorax.agents.bonuses import ngu
from explorax.agents.q import agent as q_agent
from explorax.agents.q import config as q_config
from explorax.agents.replay import device as device_replay
from explorax.agents.wiring import learner as learner_lib
from explorax.environments import (
  gridworld,
  jax_adapter,
)
from explorax.experiments import checkpoint
from explorax.experiments import config as config_lib
from explorax.experiments.presets import r2d2 as r2d2_presets
from explorax.experiments.runners import common, device, device_program

GRIDWORLD = gridworld.GridWorld(5)
PARAMS = GRIDWORLD.default_params()._replace(time_limit=np.int32(12))
R2D2 = dataclasses.replace(
  r2d2_presets.ATARI,
  hidden_sizes=(8,),
  lstm_size=4,
  head_size=4,
  exploration=exploration.EzGreedy(0.5),
  learning_rate=1e-2,
  sequence_length=4,
  burn_in=2,
  sequence_period=2,
  replay_capacity=400,
  min_replay_size=20,
  batch_size=8,
  updates_per_step=0.5,
  actor_update_period=4,
)
DQN = q_config.QConfig(
  hidden_sizes=(16,),
  num_members=2,
  mask_prob=0.5,
  exploration=exploration.EpsilonGreedy(0.3),
  learning_rate=1e-2,
  replay_capacity=400,
  min_replay_size=20,
  batch_size=8,
  updates_per_step=1.0,
)
NGU = dataclasses.replace(
  R2D2,
  bonus=ngu.NeverGiveUp(
    hidden_sizes=(4,), embedding_size=3, rnd_size=3, memory_capacity=20
  ),
  beta=0.3,
  num_policies=3,
)


def make_agent(config) -> types.Agent:
  adapter = jax_adapter.JaxEnvironment(GRIDWORLD, PARAMS, seed=0)
  spec = environments.spec(adapter)
  return q_agent.make_agent(config, spec)


def params_of(*time_limits):
  """The parameters of each of so many seeds."""
  return [PARAMS._replace(time_limit=np.int32(limit)) for limit in time_limits]


def make_program(agent, num_envs=1, num_seeds=1) -> device_program.ScannedProgram:
  return device_program.make_scanned(agent, GRIDWORLD, num_envs, num_seeds)


def train(
  agent,
  *,
  seeds=(0,),
  params=(),
  stop=lambda: False,
  checkpoints=None,
  on_episode=lambda episode: None,
  on_evaluation=lambda evaluation: None,
  **settings,
) -> list[common.Result]:
  """Trains in the grid world, and evaluates there."""
  environment = jax_adapter.JaxEnvironment(GRIDWORLD, PARAMS, seed=0)
  return device.run(
    agent,
    environment,
    config_lib.RunConfig(
      runner="device", seed=seeds[0], num_seeds=len(seeds), **settings
    ),
    common.Hooks(
      on_episode=on_episode,
      on_evaluation=on_evaluation,
      stop=stop,
      checkpoints=checkpoints,
      make_environment=lambda role, number: environment,
    ),
    params=params,
  )


@pytest.mark.core
@pytest.mark.parametrize("config", [DQN, NGU], ids=["dqn", "ngu"])
def test_acts_and_learns_as_the_local_runner_does(config, act_locally, same_rows):
  """With its keys and weights: Acme's actor and adder make the same rows, and the
  learner's shell the same update of the same sample."""
  agent, key, num_steps = make_agent(config), jax.random.PRNGKey(3), 40
  program = make_program(agent)
  state, _ = program.act(program.init(key, PARAMS), num_steps)

  learner_key, actor_key, *_ = jax.random.split(key, 4)
  weights = agent.learner.params(jax.jit(agent.learner.init)(learner_key))
  # The room has nothing random in it.
  environment = jax_adapter.JaxEnvironment(GRIDWORLD, PARAMS, seed=0)
  actor_key = jax.random.split(actor_key, 1)[0]
  memory, _ = act_locally(agent, weights, actor_key, environment, num_steps)
  same_rows(state.replay, 0, memory)

  _, sample_key = jax.random.split(state.key)
  replay = device_replay.DeviceReplay(agent, 1)
  keys, sample = jax.jit(replay.sample)(state.replay, sample_key)
  given = []
  learner = learner_lib.Learner(
    agent,
    iter([(np.asarray(keys), jax.device_get(sample))]),
    lambda keys, priorities: given.append(priorities),
    learner_key,
  )
  before = learner.save()
  learner.step()
  before_all = program.agent.no_update(state)
  after, update = jax.jit(program.agent.update)(state, before_all)
  jax.tree.map(
    lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-5),
    learner.save(),
    jax.device_get(after.learner),
  )
  assert (update.number, update.metrics["finite"]) == (1, 1)
  moved = jax.tree.map(
    lambda a, b: np.any(a != b), before.params, jax.device_get(after.learner.params)
  )
  assert any(jax.tree.leaves(moved))
  if agent.replay.priority_exponent > 0:
    powered = given[0] ** agent.replay.priority_exponent
    # Of a window drawn twice, the same both times.
    stored = after.replay.priorities[0, np.asarray(keys)]
    np.testing.assert_allclose(stored, powered, rtol=1e-3)


def test_one_program_serves_any_number_of_steps(caplog):
  program = make_program(make_agent(DQN), num_envs=3)
  state = program.init(jax.random.PRNGKey(0), PARAMS)
  with jax.log_compiles(), caplog.at_level(logging.WARNING):
    state, _ = program.act(state, 20)
    assert "Compiling" in caplog.text
    caplog.clear()
    state, _ = program.act(state, 7)
    for num_rounds, num_updates in ((1, 0), (5, 3)):
      state, *_ = program.learn(state, num_rounds, num_updates)
  assert "Compiling" not in caplog.text


def test_reports_every_episode():
  agent, told = make_agent(NGU), []
  (result,) = train(
    agent,
    seeds=[0],
    steps=160,
    on_episode=told.append,
  )
  assert result.env_steps == 160 and not result.interrupted
  assert result.episodes == len(told) > 160 // 13
  assert [e.episode for e in told] == list(range(1, len(told) + 1))
  ends = np.cumsum([e.episode_length for e in told])
  np.testing.assert_array_equal([e.env_steps for e in told], ends)
  for episode in told:
    assert episode.episode_length <= 12
    if episode.episode_length < 12:
      assert episode.episode_return == 1
    assert episode.policy in agent.policy_names
    assert episode.metrics["intrinsic_return"] > 0
    assert episode.learner_updates == max(0, episode.env_steps - 20) // 2
  assert len({e.policy for e in told}) > 1
  assert result.learner_updates == (result.env_steps - 20) // 2
  assert told[-1].metrics["finite"] == 1 and "inverse_loss" in told[-1].metrics


def test_limits_are_kept_while_replay_fills():
  agent = make_agent(DQN)
  fills = dataclasses.replace(agent.replay, min_size=350)
  agent = dataclasses.replace(agent, replay=fills)

  def run(**limits):
    (result,) = train(agent, **limits)
    return result

  short = run(steps=40)
  assert (short.env_steps, short.learner_updates) == (40, 0)
  assert not short.interrupted and np.isnan(short.steps_per_second)
  assert 3 <= run(episodes=3).episodes < 30
  asked = iter([False, True])
  stopped = run(steps=10**6, stop=lambda: next(asked))
  assert stopped.interrupted and stopped.env_steps == 350  # One report.


def test_memory_is_reserved_for_the_steps_of_a_run(tmp_path, monkeypatch):
  """Results are those of a full replay, also of a run that is extended."""
  seeds = [3, 4]
  agent, sizes = make_agent(dataclasses.replace(DQN, replay_capacity=2000)), []
  checkpoints = checkpoint.Checkpointer(tmp_path, with_replay=True)

  def save(run, **arguments):
    sizes.append(run.state.replay.rows["mask"].shape[-1])
    return save_all(run, **arguments)

  save_all = device.DeviceRun.save
  monkeypatch.setattr(device.DeviceRun, "save", save)
  train(agent, seeds=seeds, steps=120, checkpoints=checkpoints)
  checkpoints = checkpoint.Checkpointer(tmp_path, with_replay=True)
  extended = train(agent, seeds=seeds, steps=220, checkpoints=checkpoints)
  monkeypatch.setattr(device, "_max_steps", lambda *_: None)
  checkpoints = checkpoint.Checkpointer(tmp_path / "full", with_replay=True)
  full = train(agent, seeds=seeds, steps=220, checkpoints=checkpoints)
  # Two rows a step, of the run's next power of two and of another round.
  assert sizes == [2 * (128 + 1), 2 * (256 + 1), 2000 * 2 + 3]
  for one, other in zip(extended, full, strict=True):
    assert one.learner_updates == other.learner_updates == 200
    jax.tree.map(np.testing.assert_array_equal, one.weights, other.weights)


def test_each_seed_has_parameters_of_its_own():
  agent, lengths, evaluated = make_agent(DQN), {5: set(), 6: set()}, {}

  def on_evaluation(done):
    evaluated[done.seed] = {x.episode_length for x in done.episodes}

  train(
    agent,
    params=params_of(3, 12),
    seeds=[5, 6],
    steps=60,
    eval_episodes=5,
    on_episode=lambda e: lengths[e.seed].add(e.episode_length),
    on_evaluation=on_evaluation,
  )
  for each in (lengths, evaluated):
    assert max(each[5]) == 3 and 3 < max(each[6]) <= 12


def test_an_embedding_changes_between_episodes_only():
  agent = make_agent(NGU)
  program = make_program(agent, num_envs=2)
  state = program.init(jax.random.PRNGKey(0), PARAMS)
  for _ in range(20):
    state, _ = program.act(state, 1)
  held = jax.device_get(state.weights.bonus.embedding)
  while True:
    state, log, _ = program.learn(state, 1)
    done = log.episodes.ended
    num_steps = program.steps_per_round
    if np.any(done[: num_steps - 1]):
      held = jax.device_get(state.weights.bonus.embedding)
      continue
    fresh = jax.device_get(agent.learner.params(state.learner))
    fresh = fresh.bonus.embedding
    ended = np.asarray(done[num_steps - 1])
    for a, b, c in zip(
      *map(jax.tree.leaves, (held, state.weights.bonus.embedding, fresh)), strict=True
    ):
      np.testing.assert_array_equal(a, b)  # Though updates changed the learner's:
      assert np.any(np.asarray(b[0]) != c)
    if ended.any():
      break
  state, _ = program.act(state, 1)
  for env in range(2):
    for b, c in zip(
      *map(jax.tree.leaves, (state.weights.bonus.embedding, fresh)), strict=True
    ):
      assert np.array_equal(b[env], c) == ended[env]


def test_a_loss_that_is_not_finite_ends_the_run():
  agent, seeds = make_agent(DQN), [4, 5]

  def update(state, sample):
    number = state.num_updates
    state, output = agent.learner.update(state, sample)
    finite = (number != 4).astype(jnp.float32)  # Once alone, and others follow.
    return state, output._replace(metrics={**output.metrics, "finite": finite})

  broken = dataclasses.replace(agent, learner=agent.learner._replace(update=update))
  with pytest.raises(
    FloatingPointError, match=r"seed 4, a loss became NaN .* in learner update 5"
  ):
    train(broken, seeds=seeds, steps=500)
