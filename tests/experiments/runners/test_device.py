"""The device runner: the rows, the updates and the pace of the local one."""

import dataclasses
import functools
import itertools
import logging

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from explorax import accelerators, environments, exploration
from explorax.agents import types
from explorax.agents.bonuses import ngu
from explorax.agents.q import agent as q_agent
from explorax.agents.q import config as q_config
from explorax.agents.wiring import learner as learner_lib
from explorax.environments import gridworld, jax_adapter
from explorax.experiments import checkpoint
from explorax.experiments import config as config_lib
from explorax.experiments.presets import r2d2 as r2d2_presets
from explorax.experiments.runners import common, course, device, device_program

GRIDWORLD = gridworld.GridWorld(5)
PARAMS = GRIDWORLD.default_params()._replace(time_limit=np.int32(12))
# A round is two steps of two environments and an update; NGU's is one step.
DQN = q_config.QConfig(
  hidden_sizes=(8,),
  num_members=2,
  mask_prob=0.5,
  exploration=exploration.EpsilonGreedy(0.3),
  learning_rate=1e-2,
  replay_capacity=400,
  min_replay_size=240,
  batch_size=8,
  updates_per_step=0.25,
)
NGU = dataclasses.replace(
  r2d2_presets.ATARI,
  hidden_sizes=(8,),
  lstm_size=4,
  head_size=4,
  exploration=exploration.EzGreedy(0.5),
  learning_rate=1e-2,
  sequence_length=3,
  burn_in=0,
  sequence_period=2,
  replay_capacity=400,
  min_replay_size=20,
  batch_size=8,
  updates_per_step=0.5,
  actor_update_period=4,
  bonus=ngu.NeverGiveUp(
    hidden_sizes=(4,), embedding_size=3, rnd_size=3, memory_capacity=20
  ),
  beta=0.3,
  num_policies=3,
)


def make_agent(config) -> types.Agent:
  adapter = jax_adapter.JaxEnvironment(GRIDWORLD, PARAMS, seed=0)
  return q_agent.make_agent(config, environments.spec(adapter))


def make_program(agent) -> device_program.ScannedProgram:
  """That of a run of one seed in two environments without a limit of steps."""
  return device_program.make_scanned(agent, GRIDWORLD, 2, 1, False, None)


def train(agent, *, seeds=(0,), params=(), **settings) -> list[common.Result]:
  """Trains in the grid world, and evaluates there if asked to."""
  environment = jax_adapter.JaxEnvironment(GRIDWORLD, PARAMS, seed=0)
  names = {field.name for field in dataclasses.fields(common.Hooks)}
  hooks = {name: settings.pop(name) for name in names & {*settings}}
  config = {"num_envs": 2, "eval_episodes": 0, **settings}
  return device.run(
    agent,
    environment,
    config_lib.RunConfig(
      runner="device", seed=seeds[0], num_seeds=len(seeds), **config
    ),
    common.Hooks(make_environment=lambda role, number: environment, **hooks),
    params=params,
  )


@pytest.mark.core
@pytest.mark.parametrize("config", [DQN, NGU], ids=["dqn", "ngu"])
def test_acts_and_learns_as_the_local_runner_does(config, act_locally, same_rows):
  """With its keys and weights: Acme's actors and adders make the same rows, and the
  learner's shell the same update of the same sample."""
  agent, key, num_steps = make_agent(config), jax.random.PRNGKey(3), 40
  program = make_program(agent)
  state = program.init(key, PARAMS)
  state, _ = program.act(state, num_steps - program.steps_per_round)
  same = jax.tree.map(np.array, state)
  acted, _ = program.act(state, program.steps_per_round)
  learnt, _, update = program.learn(same, 1)

  learner_key, actor_key, *_ = jax.random.split(key, 4)
  samples, given = [], []
  learner = learner_lib.Learner(
    agent, iter(samples), lambda keys, priorities: given.append(priorities), learner_key
  )
  (weights,) = learner.get_variables(["params"])
  # The room has nothing random in it.
  environment = jax_adapter.JaxEnvironment(GRIDWORLD, PARAMS, seed=0)
  for env, own_key in enumerate(jax.random.split(actor_key, 2)):
    place = {"actor_ids": (env,), "num_actors": 2}
    memory, _ = act_locally(agent, weights, own_key, environment, num_steps, **place)
    same_rows(acted.replay, env, memory)

  _, sample_key = jax.random.split(acted.key)
  keys, sample = jax.jit(program.agent.replay.sample)(acted.replay, sample_key)
  samples.append((np.asarray(keys), jax.device_get(sample)))
  before = learner.save()
  learner.step()
  jax.tree.map(
    lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-5),
    learner.save(),
    jax.device_get(learnt.learner),
  )
  assert (update.number, update.metrics["finite"]) == (1, 1)
  moved = jax.tree.map(
    lambda a, b: np.any(a != b), before.params, jax.device_get(learnt.learner.params)
  )
  assert any(jax.tree.leaves(moved))
  if agent.replay.priority_exponent > 0:
    powered = given[0] ** agent.replay.priority_exponent
    # Of a window drawn twice, the same both times.
    stored = np.ravel(learnt.replay.priorities)[np.asarray(keys)]
    np.testing.assert_allclose(stored, powered, rtol=1e-3)


def test_one_program_serves_any_number_of_steps(caplog):
  program = make_program(make_agent(DQN))
  state, _ = program.act(program.init(jax.random.PRNGKey(0), PARAMS), 20)
  with jax.log_compiles(), caplog.at_level(logging.WARNING):
    state, _ = program.act(state, 7)
    for num_rounds, num_updates in ((1, 0), (5, 3)):
      state, *_ = program.learn(state, num_rounds, num_updates)
    assert "Compiling" not in caplog.text
    jax.jit(lambda: 0)()
  assert "Compiling" in caplog.text


def test_programs_for_accelerators_do_the_same(monkeypatch):
  """Without branches and loops of unknown length, for two seeds."""
  agent = make_agent(dataclasses.replace(DQN, priority_exponent=0.6))

  def outcome():
    program = device_program.ScannedProgram(agent, GRIDWORLD, 2, 2)
    keys = jax.random.split(jax.random.PRNGKey(0), 2)
    state, filled = program.act(program.init(keys, PARAMS), 120)
    state, log, update = program.learn(state, 30)
    seen = jax.device_get((filled, log))
    ended = [jax.tree.map(lambda x, e=x.episodes.ended: x[e], x.episodes) for x in seen]
    return jax.device_get((state, update, ended))

  expected = outcome()
  monkeypatch.setattr(accelerators, "may_branch", lambda: False)
  jax.tree.map(
    lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6),
    outcome(),
    expected,
  )


def test_reports_every_episode():
  agent, told = make_agent(NGU), []
  (result,) = train(agent, episodes=10, on_episodes=told.extend)
  assert result.env_steps == 220 and not result.interrupted  # The second report.
  assert result.episodes == len(told) > 220 // 13
  assert [e.episode for e in told] == list(range(1, len(told) + 1))
  begun = [0, 0]  # When the open episode of each environment has begun.
  for episode in told:
    assert episode.episode_length <= 12
    if episode.episode_length < 12:
      assert episode.episode_return == 1
    steps = episode.env_steps // 2
    begun[begun.index(steps - episode.episode_length)] = steps
    assert episode.policy in agent.policy_names
    assert episode.metrics["intrinsic_return"] > 0
    assert episode.learner_updates == max(0, episode.env_steps - 20) // 2
  assert len({e.policy for e in told}) > 1
  assert result.learner_updates == (result.env_steps - 20) // 2
  assert told[-1].metrics["finite"] == 1 and "inverse_loss" in told[-1].metrics


def test_limits_are_kept_while_replay_fills(monkeypatch):
  monkeypatch.setattr(device, "_max_steps", lambda *_: None)  # One program for all.
  agent = make_agent(DQN)

  def run(**limits):
    (result,) = train(agent, **limits)
    return result

  short = run(steps=40)
  assert (short.env_steps, short.learner_updates) == (40, 0)
  assert not short.interrupted and np.isnan(short.steps_per_second)
  few = run(episodes=3)
  assert few.episodes >= 3 and few.env_steps == 200
  asked = iter([False, True, True])
  stopped = run(steps=10**6, stop=lambda: next(asked))
  assert stopped.interrupted and stopped.env_steps == 240  # One report.


def test_the_device_goes_on_while_the_host_reports(monkeypatch, bits, tmp_path):
  monkeypatch.setattr(device_program, "_MAX_ENV_STEPS_PER_REPORT", 200)
  agent = make_agent(dataclasses.replace(DQN, learning_rate=1e-3))
  folders = itertools.count()

  def run(ends=False):
    told, saved, to = [], [], tmp_path / str(next(folders))
    keep = checkpoint.Checkpointer(to, with_replay=True, every=400)
    hooks = {"on_episodes": told.extend, "ended": lambda: ends and bool(told)}
    hooks |= {"checkpoints": keep, "on_checkpoint": lambda *at: saved.append(at[1])}
    (result,) = train(agent, steps=1000, **hooks)
    return result.env_steps, saved, [e.episode for e in told], bits(result.weights)

  ahead, ended = run(), run(ends=True)
  monkeypatch.setattr(course.RunControl, "_may_run_ahead", lambda self: False)
  assert run() == ahead and ahead[:2] == (1000, [440, 840, 1000])
  assert (ended[0], run(ends=True)[0]) == (240, 200)  # A report more, and not.


@pytest.mark.parametrize(
  # Two rows a step, of the run's next power of two and of another round.
  ("steps", "rows"),
  [(240, 2 * (128 + 2)), (260, 2 * (256 + 2)), (10**6, 2 * 1000 + 3)],
)
def test_memory_is_reserved_for_the_steps_of_a_run(monkeypatch, steps, rows):
  agent = make_agent(dataclasses.replace(DQN, replay_capacity=2000))
  monkeypatch.setattr(course.RunControl, "train", lambda self: self._run.state)
  mask = jax.eval_shape(lambda: train(agent, steps=steps).replay.rows["mask"])
  assert mask.shape == (2, rows)


@functools.cache
def cheap_agent() -> types.Agent:
  """A DQN whose updates do nothing, and whose fifth one is not finite."""
  agent = make_agent(DQN)

  def update(state, sample):
    # Once alone, and others follow.
    finite = (state.num_updates != 4).astype(jnp.float32)
    metrics = dict.fromkeys(agent.learner.metrics, finite)
    state = state._replace(num_updates=state.num_updates + 1)
    return state, types.LearnerOutput(sample.probabilities, metrics)

  return dataclasses.replace(agent, learner=agent.learner._replace(update=update))


# The parameters of each of two seeds.
TWO = [PARAMS._replace(time_limit=np.int32(limit)) for limit in (3, 12)]


def test_each_seed_has_parameters_of_its_own():
  lengths, evaluated = {5: set(), 6: set()}, {}

  def on_evaluation(done):
    evaluated[done.seed] = {x.episode_length for x in done.episodes}

  train(
    cheap_agent(),
    seeds=[5, 6],
    episodes=5,
    eval_episodes=5,
    on_episodes=lambda es: [lengths[e.seed].add(e.episode_length) for e in es],
    on_evaluation=on_evaluation,
    params=TWO,
    steps=500,
  )
  for each in (lengths, evaluated):
    assert max(each[5]) == 3 and 3 < max(each[6]) <= 12


def test_a_loss_that_is_not_finite_ends_the_run():
  with pytest.raises(
    FloatingPointError, match=r"seed 5, a loss became NaN .* in learner update 5"
  ):
    train(cheap_agent(), seeds=[5, 6], params=TWO, steps=500)


def test_an_embedding_changes_between_episodes_only():
  agent = make_agent(NGU)
  program = make_program(agent)
  state, _ = program.act(program.init(jax.random.PRNGKey(0), PARAMS), 20)

  def used():
    return jax.tree.leaves(jax.tree.map(np.array, state.weights.bonus.embedding))

  held, ended = used(), np.zeros(2, bool)
  while not ended.any():
    state, log, _ = program.learn(state, 1)
    ended = np.asarray(log.episodes.ended[0])
    fresh = jax.device_get(agent.learner.params(state.learner))
    fresh = jax.tree.leaves(fresh.bonus.embedding)
    for a, b, c in zip(held, used(), fresh, strict=True):
      np.testing.assert_array_equal(a, b)  # Though updates changed the learner's:
      assert np.any(b[0] != c)
  state, _ = program.act(state, 1)
  for env in range(2):
    for b, c in zip(used(), fresh, strict=True):
      assert np.array_equal(b[env], c) == ended[env]
