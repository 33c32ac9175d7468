"""The device runner: the rows, the updates and the pace of the local one."""

import dataclasses

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
  jax_types,
  specs,
  testing,
)
from explorax.experiments import config as config_lib
from explorax.experiments.checkpoints import checkpointer
from explorax.experiments.presets import r2d2 as r2d2_presets
from explorax.experiments.runners import core, device, device_program, errors

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
GREEDIER = exploration.EpsilonGreedy(0.1)
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
  on_episode=lambda episode: None,
  stop=lambda: False,
  **settings,
) -> list[core.Result]:
  """Trains in the grid world."""
  return device.run_seeds(
    agent,
    jax_adapter.JaxEnvironment(GRIDWORLD, PARAMS, seed=0),
    config_lib.RunConfig(
      runner="device", seed=seeds[0], num_seeds=len(seeds), **settings
    ),
    core.Hooks(on_episode=on_episode, stop=stop),
    params=params,
  )


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


@pytest.mark.parametrize(
  ("config", "num_envs", "updates", "steps", "rounds"),
  [(DQN, 2, 2, 1, 2), (NGU, 1, 1, 2, 5)],
)
def test_updates_keep_to_the_configured_pace(config, num_envs, updates, steps, rounds):
  """And the rounds compile once."""
  program = device_program.ScannedProgram(
    make_agent(config), GRIDWORLD, num_envs, num_seeds=1
  )
  assert (program.updates_per_round, program.steps_per_round) == (updates, steps)
  state = program.init(jax.random.PRNGKey(0), PARAMS)
  num_steps = rounds * steps
  for _ in range(20 // num_steps):
    state, _ = program.act(state, num_steps)
  for calls in (1, 2, 3):
    state, episodes, update = program.learn(state, rounds)
    assert state.learner.num_updates == calls * rounds * updates
    assert state.steps == 20 + calls * num_steps
    assert episodes.ended.shape == (num_steps, num_envs)
    assert bool(update.metrics["finite"])
  assert program.learn._cache_size() == 1


def test_each_seed_runs_as_if_it_were_alone():
  agent = make_agent(DQN)

  def episodes(seeds, num_steps):
    told = {seed: [] for seed in seeds}
    results = train(
      agent,
      seeds=seeds,
      num_envs=2,
      steps=num_steps,
      on_episode=lambda e: told[e.seed].append(
        (e.episode, e.env_steps, e.episode_return, e.episode_length, e.policy)
      ),
    )
    return told, results

  alone, _ = episodes([7], 80)
  together, _ = episodes([6, 7], 80)
  assert together[7] == alone[7]
  # After two updates or four: rounding, which Adam makes much of, has not grown yet.
  _, (result,) = episodes([7], 24)
  _, results = episodes([6, 7], 24)
  assert result.learner_updates > 0
  jax.tree.map(
    lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-2, atol=1e-4),
    result.weights,
    results[1].weights,
  )
  other, own = (jax.tree.leaves(r.weights) for r in results)
  assert any(np.any(a != b) for a, b in zip(other, own, strict=True))


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


def test_learns():
  config = q_config.QConfig(min_replay_size=200, exploration=GREEDIER)
  returns = []
  train(
    make_agent(config),
    seeds=[0],
    steps=5000,
    on_episode=lambda e: returns.append(e.episode_return),
  )
  assert np.mean(returns[-50:]) > 0.8 > 0.5 > np.mean(returns[:20])


class Blinking:
  """Shows the last three steps' numbers, a pixel each; an episode has six steps."""

  num_actions = 2

  def default_params(self):
    return ()

  def observation_spec(self):
    return specs.StackedFrames((1, 1, 3), np.float32, 3, "steps")

  def reset(self, key, params):
    shown = jnp.array([0.0, 0.0, 1.0]).reshape(1, 1, 3)
    return shown, jax_types.restart(shown)

  def step(self, key, shown, action, params):
    number = shown[0, 0, -1] + 1
    shown = jnp.concatenate([shown[..., 1:], jnp.full((1, 1, 1), number)], axis=-1)
    done = number > 6
    return shown, jax_types.transition(shown, 1.0, terminated=done, truncated=done)

  def metrics(self, shown, params):
    return {}


def test_frames_are_stored_once_and_joined_again():
  environment = Blinking()
  adapter = jax_adapter.JaxEnvironment(environment, seed=0)
  config = dataclasses.replace(DQN, n_step=2)
  agent = q_agent.make_agent(config, environments.spec(adapter))
  program = device_program.ScannedProgram(agent, environment, num_envs=2, num_seeds=1)
  state, _ = program.act(program.init(jax.random.PRNGKey(0), ()), 20)
  assert state.replay.rows["observation"].shape[2:] == (1, 1, 1)
  sample_of = jax.jit(program.agent.replay.sample)
  _, sample = sample_of(state.replay, jax.random.PRNGKey(1))
  observations = types.join_frames(sample.rows["observation"], 3)[:, 0, 0, 0]
  for shown in np.asarray(observations):
    expected = np.maximum(shown[-1] - np.array([2, 1, 0]), 0)
    np.testing.assert_array_equal(shown, expected)
  _, _, update = program.learn(state, 3)
  assert bool(update.metrics["finite"])


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
  assert stopped.interrupted and stopped.env_steps == 88  # The first of four shares.


@pytest.mark.parametrize("with_replay", [True, False])
def test_an_evaluation_that_was_left_off_is_repeated_at_once(tmp_path, with_replay):
  evaluated, asked = [], iter([False] * 6 + [True] * 3)

  def run(stop):
    hooks = core.Hooks(
      on_evaluation=lambda done: evaluated.append(done.env_steps),
      stop=stop,
      checkpoints=checkpointer.Checkpointer(tmp_path, with_replay=with_replay),
    )
    environment, evaluation = (
      jax_adapter.JaxEnvironment(GRIDWORLD, PARAMS, seed=seed) for seed in (0, 1)
    )
    return device.run(
      make_agent(DQN),
      environment,
      config_lib.RunConfig(runner="device", steps=220, eval_every=100),
      hooks,
      evaluation_environment=evaluation,
    )

  assert run(lambda: next(asked)).env_steps == 120 and not evaluated
  assert run(lambda: False).env_steps == 220
  assert evaluated == [120, 220]


def test_each_seed_has_parameters_of_its_own():
  agent, lengths = make_agent(DQN), {5: set(), 6: set()}
  train(
    agent,
    params=params_of(3, 12),
    seeds=[5, 6],
    steps=60,
    on_episode=lambda e: lengths[e.seed].add(e.episode_length),
  )
  assert max(lengths[5]) == 3 and 3 < max(lengths[6]) <= 12
  train(
    agent,
    params=params_of(3),
    seeds=[5],
    steps=20,
    on_episode=lambda e: lengths[5].add(e.episode_length),
  )
  assert max(lengths[5]) == 3


def test_stops_after_so_many_episodes_or_when_asked():
  agent, counts = make_agent(DQN), {0: 0, 1: 0}

  def count(episode):
    counts[episode.seed] = episode.episode

  results = train(
    agent,
    seeds=[0, 1],
    params=params_of(12, 12),  # As in another test: a program less to compile.
    episodes=5,
    on_episode=count,
  )
  assert all(r.episodes == counts[i] >= 5 for i, r in enumerate(results))
  (result,) = train(agent, seeds=[0], steps=10**6, stop=lambda: True)
  assert result.interrupted and result.env_steps < 2000


def test_an_embedding_changes_between_episodes_only():
  agent = make_agent(NGU)
  program = make_program(agent, num_envs=2)
  state = program.init(jax.random.PRNGKey(0), PARAMS)
  for _ in range(20):
    state, _ = program.act(state, 1)
  held = jax.device_get(state.weights.bonus.embedding)
  while True:
    state, episodes, _ = program.learn(state, 1)
    if np.any(episodes.ended[:-1]):
      held = jax.device_get(state.weights.bonus.embedding)
      continue
    fresh = jax.device_get(agent.learner.params(state.learner))
    fresh = fresh.bonus.embedding
    ended = np.asarray(episodes.ended[-1])
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


@pytest.mark.parametrize("seeds", [[4], [4, 5]])
def test_a_loss_that_is_not_finite_ends_the_run(seeds):
  agent = make_agent(DQN)

  def update(state, sample):
    number = state.num_updates
    state, output = agent.learner.update(state, sample)
    finite = (number != 4).astype(jnp.float32)  # Once alone, and others follow.
    return state, output._replace(metrics={**output.metrics, "finite": finite})

  broken = dataclasses.replace(agent, learner=agent.learner._replace(update=update))
  with pytest.raises(
    errors.NonFiniteError, match=r"seed 4: a loss became NaN .* in learner update 5"
  ) as caught:
    train(broken, seeds=seeds, steps=500)
  assert len(caught.value.weights) == len(seeds)
  assert jax.tree.leaves(caught.value.weights)


def test_run_is_for_one_seed_and_evaluates():
  agent, told, evaluations = make_agent(DQN), [], []
  environment = jax_adapter.JaxEnvironment(GRIDWORLD, PARAMS, seed=0)
  result = device.run(
    agent,
    environment,
    config_lib.RunConfig(runner="device", seed=3, steps=60, eval_episodes=2),
    core.Hooks(on_episode=told.append, on_evaluation=evaluations.append),
    evaluation_environment=jax_adapter.JaxEnvironment(GRIDWORLD, PARAMS, seed=1),
  )
  assert result.env_steps == 60 and result.episodes == len(told) > 0
  (done,) = evaluations
  assert done.env_steps == 60 and len(done.episodes) == 2
  (alone,) = train(agent, seeds=[3], steps=60)
  jax.tree.map(np.testing.assert_array_equal, result.weights, alone.weights)


def test_refuses():
  agent = make_agent(DQN)
  with pytest.raises(ValueError, match="FakeEnvironment"):
    one_step = config_lib.RunConfig(runner="device", steps=1)
    device.run(agent, testing.FakeEnvironment(), one_step)
  with pytest.raises(ValueError, match="limit"):
    train(agent)
  with pytest.raises(ValueError, match="eval_every"):
    train(agent, steps=1, eval_every=5)
  with pytest.raises(ValueError, match="2 seeds, but 1 params"):
    train(agent, seeds=[0, 1], params=params_of(3), steps=1)
  for rate in (1e-4, 1e9):
    config = dataclasses.replace(DQN, updates_per_step=rate)
    with pytest.raises(ValueError, match="updates_per_step"):
      train(make_agent(config), steps=1)
