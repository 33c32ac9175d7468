"""The Acme actor: what reaches the core, and that it compiles once."""

from typing import Any, NamedTuple

import dm_env
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from explorax.agents import types
from explorax.agents.wiring import actor as actor_lib
from explorax.environments import encodings, specs

OBSERVATIONS = dm_env.specs.Array((2,), np.float32)


class CoreState(NamedTuple):
  """What the recording core remembers: everything, one row per call."""

  calls: jax.Array
  step_types: jax.Array
  rewards: jax.Array
  observations: jax.Array
  env_steps: jax.Array
  weights: jax.Array
  kept: jax.Array


def recording_core(traces: list[str], capacity: int = 20) -> types.ActorCore:
  """Its states remember all calls; `traces` gets an entry for each tracing."""

  def init(key, actor_id, num_actors):
    del key
    ids = jnp.float32(100 * actor_id + num_actors)
    return CoreState(
      jnp.int32(0),
      jnp.full((capacity,), -1, jnp.int32),
      jnp.full((capacity,), ids),
      jnp.zeros((capacity, 2)),
      jnp.zeros((capacity,), jnp.int32),
      jnp.zeros((capacity,)),
      jnp.zeros((capacity,)),
    )

  def select_action(params, timestep, state):
    traces.append("select_action")
    i = state.calls
    state = CoreState(
      i + 1,
      state.step_types.at[i].set(timestep.step_type),
      state.rewards.at[i].set(timestep.reward),
      state.observations.at[i].set(timestep.observation),
      state.env_steps.at[i].set(params.env_steps),
      state.weights.at[i].set(params.weights["w"]),
      state.kept.at[i].set(params.weights["kept"]),
    )
    return i % 4, state

  def extras(state):
    return {"policy": state.calls % 2, "r_int": 10.0 * state.calls}

  return types.ActorCore(init, select_action, extras)


class Variables:
  """A variable source whose weights count how often they were asked for."""

  def __init__(self):
    self.num_fetches = 0

  def get_variables(self, names: list[str]) -> list[Any]:
    assert names == ["params"]
    self.num_fetches += 1
    newest = jnp.float32(self.num_fetches)
    return [{"w": newest, "kept": newest}]


class RecordingAdder:
  """Keeps what an actor hands to its adder."""

  def __init__(self):
    self.calls: list[tuple[Any, ...]] = []

  def add_first(self, timestep):
    self.calls.append(("first", float(timestep.observation[0])))

  def add(self, action, next_timestep, extras):
    self.calls.append(
      (
        "add",
        int(action),
        float(next_timestep.reward),
        float(next_timestep.discount),
        float(next_timestep.observation[0]),
        float(extras["r_int"]),
      )
    )

  def add_last(self, extras):
    self.calls.append(("last", float(extras["r_int"])))


def make_actor(
  period: int = 1,
  adders: Any = (),
  traces: list[str] | None = None,
  refresh: types.Refresh | None = None,
  **kwargs,
) -> tuple[actor_lib.Actor, Variables]:
  variables = Variables()
  agent = types.Agent(
    config=None,
    spec=specs.EnvironmentSpec(OBSERVATIONS, dm_env.specs.DiscreteArray(4)),
    encoding=encodings.make(OBSERVATIONS),
    extras_spec={},
    actor=lambda evaluation=False: None,
    learner=types.LearnerCore(None, None, None),
    replay=types.ReplaySpec(capacity=1, min_size=1, batch_size=1, updates_per_step=1.0),
    actor_update_period=period,
    refresh=refresh,
  )
  core = recording_core([] if traces is None else traces)
  key = jax.random.PRNGKey(0)
  return actor_lib.Actor(agent, core, variables, key, adders, **kwargs), variables


def timestep(
  step_type: dm_env.StepType, x: float, reward: Any = None, discount: Any = None
) -> dm_env.TimeStep:
  return dm_env.TimeStep(step_type, reward, discount, np.full(2, x, np.float64))


def run_episode(actor: actor_lib.Actor, xs: tuple[float, ...]) -> None:
  """As Acme's loop does; observation x arrives with reward 10 x."""
  actor.observe_first(timestep(dm_env.StepType.FIRST, xs[0]))
  for x in xs[1:]:
    action = actor.select_action(None)
    last = x == xs[-1]
    step_type = dm_env.StepType.LAST if last else dm_env.StepType.MID
    actor.observe(action, timestep(step_type, x, 10 * x, 0.0 if last else 1.0))
    actor.update()


def state_of(actor: actor_lib.Actor) -> CoreState:
  return jax.device_get(actor.state)


def test_the_core_sees_every_timestep_and_the_last():
  actor, _ = make_actor()
  run_episode(actor, (1.0, 2.0, 3.0))
  run_episode(actor, (4.0, 5.0))
  state = state_of(actor)
  assert state.calls == 5
  np.testing.assert_array_equal(state.step_types[:5], [0, 1, 2, 0, 2])
  np.testing.assert_array_equal(state.observations[:5, 0], [1, 2, 3, 4, 5])
  # Where the environment gave None, 0.
  np.testing.assert_array_equal(state.rewards[:5], [0, 20, 30, 0, 50])
  # The steps taken when the observation arrived.
  np.testing.assert_array_equal(state.env_steps[:5], [0, 1, 2, 2, 3])
  assert actor.env_steps == 3


def test_rows_hold_the_extras_of_their_own_action():
  adder = RecordingAdder()
  actor, _ = make_actor(adders=[adder])
  run_episode(actor, (1.0, 2.0, 3.0))
  run_episode(actor, (4.0, 5.0))
  # (action, reward, discount, next observation, extras): the core's call number tells
  # which of its answers it was. The LAST call's action is dropped, its extras kept.
  assert adder.calls == [
    ("first", 1.0),
    ("add", 0, 20.0, 1.0, 2.0, 10.0),
    ("add", 1, 30.0, 0.0, 3.0, 20.0),
    ("last", 30.0),
    ("first", 4.0),
    ("add", 3, 50.0, 0.0, 5.0, 40.0),
    ("last", 50.0),
  ]


def test_actor_id_and_number_reach_the_core():
  actor, _ = make_actor(actor_ids=(3,), num_actors=7)
  assert state_of(actor).rewards[0] == 307


@pytest.mark.parametrize("period, expected", [(1, [1, 2, 3, 4]), (2, [1, 1, 2, 2])])
def test_weights_are_fetched_every_period(period, expected):
  actor, variables = make_actor(period=period)
  actor.observe_first(timestep(dm_env.StepType.FIRST, 0.0))
  for _ in range(4):
    action = actor.select_action(None)
    actor.observe(action, timestep(dm_env.StepType.MID, 0.0, 0.0, 1.0))
    actor.update()
  # Once at the first action, then as the period says.
  np.testing.assert_array_equal(state_of(actor).weights[:4], expected)
  assert variables.num_fetches == 1 + 4 // period


def test_compiles_once():
  """Whatever the environment's own types, the jitted step sees the same ones."""
  traces: list[str] = []
  actor, _ = make_actor(traces=traces)
  run_episode(actor, (1.0, 2.0, 3.0))
  first = dm_env.restart(np.zeros(2, np.int64))
  actor.observe_first(first)
  for reward in (1, 1.0, np.float64(1), np.float32(1), jnp.float32(1), True):
    action = actor.select_action(None)
    actor.observe(action, dm_env.transition(reward, np.ones(2, np.int32)))
  actor.observe(actor.select_action(None), dm_env.termination(0, np.ones(2)))
  assert len(traces) == 1


def keep(current: Any, new: Any) -> Any:
  """A refresh that changes one part of the weights within an episode."""
  return {"w": new["w"], "kept": current["kept"]}


def test_a_part_of_the_weights_changes_only_between_episodes():
  actor, _ = make_actor(period=2, refresh=keep)
  run_episode(actor, (0.0, 1.0, 2.0, 3.0, 4.0, 5.0))
  # Fetched for the first observation, after steps 2 and 4, and for the next episode.
  run_episode(actor, (0.0, 1.0))
  state = state_of(actor)
  np.testing.assert_array_equal(state.weights[:8], [1, 1, 2, 2, 3, 3, 4, 4])
  np.testing.assert_array_equal(state.kept[:8], [1, 1, 1, 1, 1, 1, 4, 4])


@pytest.mark.parametrize("refresh", [None, keep])
def test_several_environments_are_as_an_actor_in_each(refresh):
  """Their episodes end at different times, and some wait before they begin another."""
  ids, lengths = (3, 4, 5), (2, 3, 5)
  adders = [RecordingAdder() for _ in range(6)]
  settings = {"num_actors": 9, "refresh": refresh}
  actor, _ = make_actor(adders=adders[:3], actor_ids=ids, **settings)
  alone = [
    make_actor(adders=[adder], actor_ids=(i,), **settings)[0]
    for i, adder in zip(ids, adders[3:], strict=True)
  ]
  times = [0, 0, 0]
  for step in range(15):
    for env in range(3):
      if actor.timesteps[env] is None and (env != 1 or step % 4 == 0):
        times[env] = 0
        for one, slot in ((actor, env), (alone[env], 0)):
          one.observe_first(timestep(dm_env.StepType.FIRST, float(step)), slot)
    actor.env_steps = step
    actions = actor.select_actions()
    for env in (i for i in range(3) if actor.timesteps[i] is not None):
      alone[env].env_steps = step
      assert alone[env].select_actions()[0] == actions[env]
      times[env] += 1
      last = times[env] == lengths[env]
      kind = dm_env.StepType.LAST if last else dm_env.StepType.MID
      answer = timestep(kind, float(step), 1.0 + env, 1.0)
      for one, slot in ((actor, env), (alone[env], 0)):
        one.observe_step(slot, actions[env], answer)
    for one in alone:
      one.env_steps = actor.env_steps
    ended = actor.end_episodes()
    assert ended == [env for env in range(3) if alone[env].end_episodes()]
  assert [adder.calls for adder in adders[:3]] == [adder.calls for adder in adders[3:]]
  for env, one in enumerate(alone):
    for name in ("calls", "step_types", "rewards", "observations", "env_steps"):
      together = getattr(state_of(actor), name)[env]
      np.testing.assert_array_equal(together, getattr(state_of(one), name), name)
