"""The contracts, tried on a skeleton of the hardest agent there is: Never Give Up.

It has a recurrent state, an episodic memory, a novelty on every row and on the last
observation too, a mixture of policies, sequences with burn-in and a stored state, and
a policy of its own for evaluation. It is acted with by the local runner and by a
vmapped scan, which must not differ.
"""

from typing import Any, NamedTuple

import dm_env
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from explorax import exploration, losses
from explorax.agents import types
from explorax.agents.bonuses import scaling
from explorax.agents.wiring import adder as adder_lib
from explorax.agents.wiring import builder as builder_lib
from explorax.environments import factory, specs, standard, testing
from explorax.experiments import config as config_lib
from explorax.experiments.runners import core, local

pytestmark = pytest.mark.newest

H, A, DIM, MIXTURE = 3, 2, 3, 4
BETAS = exploration.mixture_betas(MIXTURE, 0.3)
# What the network knows of the step before: a_{t−1} as one-hot, r_t and r^i_{t−1}.
PREVIOUS = A + 2


class CoreState(NamedTuple):
  """What lasts between two steps of the skeleton."""

  key: jax.Array
  mixture: jax.Array
  hidden: jax.Array
  previous: jax.Array  # With the reward still missing: it comes with x_t.
  memory: exploration.EpisodicMemory
  extras: dict[str, jax.Array]


def unroll_step(weights, hidden, observation, mixture, previous):
  """(hidden state, values) after x_t."""
  one_hot = jax.nn.one_hot(mixture, MIXTURE)
  features = jnp.concatenate([observation, one_hot, previous])
  hidden = jnp.tanh(features @ weights["input"] + hidden @ weights["recurrent"])
  return hidden, hidden @ weights["head"]


def make_core(evaluation: bool) -> types.ActorCore:
  epsilon = 0.0 if evaluation else 0.5

  def draw_mixture(key):
    drawn = jax.random.randint(key, (), 0, MIXTURE)
    return jnp.zeros_like(drawn) if evaluation else drawn

  def init(key, actor_id, num_actors):
    del num_actors
    extras = {
      "policy": jnp.int32(0),
      "behaviour_prob": jnp.float32(1),
      "r_int": jnp.float32(0),
      "q": jnp.zeros(A),
      "hidden": jnp.zeros(H),
      "previous": jnp.zeros(PREVIOUS),
    }
    return CoreState(
      key=jax.random.fold_in(key, actor_id),
      mixture=jnp.int32(0),
      hidden=jnp.zeros(H),
      previous=jnp.zeros(PREVIOUS),
      memory=exploration.init_episodic_memory(8, DIM),
      extras=extras,
    )

  def select_action(params, timestep, state):
    key, mixture_key, action_key = jax.random.split(state.key, 3)
    fresh = CoreState(
      key=key,
      mixture=draw_mixture(mixture_key),
      hidden=jnp.zeros(H),
      previous=jnp.zeros(PREVIOUS),
      memory=exploration.clear_episodic_memory(state.memory),
      extras=state.extras,
    )
    first = timestep.step_type == dm_env.StepType.FIRST
    state = jax.tree.map(
      lambda a, b: jnp.where(first, a, b), fresh, state._replace(key=key)
    )
    observation = jnp.asarray(timestep.observation)
    weights = params.weights
    embedding = observation @ weights["embedding"]
    r_int, memory = exploration.episodic_novelty(state.memory, embedding, 2)
    previous = state.previous.at[A].set(timestep.reward)
    hidden, q = unroll_step(weights, state.hidden, observation, state.mixture, previous)
    rule = exploration.EpsilonGreedy(epsilon=epsilon)
    action, prob, _ = rule.select(
      action_key, q[None], rule.init(key, 1, A), params.env_steps
    )
    extras = {
      "policy": state.mixture,
      "behaviour_prob": prob,
      "r_int": r_int,
      "q": q,
      "hidden": state.hidden,  # The one before x_t.
      "previous": previous,
    }
    taken = jax.nn.one_hot(action, A)
    following = jnp.concatenate([taken, jnp.stack([jnp.float32(0), r_int])])
    return action, CoreState(key, state.mixture, hidden, following, memory, extras)

  return types.ActorCore(init, select_action, lambda state: state.extras)


class LearnerState(NamedTuple):
  weights: dict[str, jax.Array]
  num_updates: jax.Array


def unroll(weights, rows, first):
  """The values of one window `[R, A]`, from its stored state on."""
  taken = jax.nn.one_hot(rows["action"][:-1], A)
  tail = jnp.stack([rows["reward"][:-1], rows["r_int"][:-1]], axis=1)
  previous = jnp.concatenate(
    [first["previous"][None], jnp.concatenate([taken, tail], axis=1)]
  )

  def step(hidden, x):
    return unroll_step(weights, hidden, *x)

  inputs = (rows["observation"], rows["policy"], previous)
  return jax.lax.scan(step, first["hidden"], inputs)[1]


def make_learner(learning_rate: float, burn_in: int) -> types.LearnerCore:
  def init(key):
    shapes = {
      "input": (DIM + MIXTURE + PREVIOUS, H),
      "recurrent": (H, H),
      "head": (H, A),
      "embedding": (DIM, DIM),
    }
    keys = jax.random.split(key, len(shapes))
    weights = {
      name: jax.random.normal(k, shape)
      for k, (name, shape) in zip(keys, shapes.items(), strict=True)
    }
    return LearnerState(weights, jnp.int32(0))

  def window_loss(weights, rows, first):
    q = unroll(weights, rows, first)
    r_int = scaling.align(rows["r_int"], "destination")
    reward = rows["reward"][:-1] + BETAS[rows["policy"][0]] * r_int
    target = reward + 0.9 * rows["discount"][:-1] * jnp.max(q[1:], axis=1)
    q_a = jnp.take_along_axis(q, rows["action"][:, None], axis=1)[:-1, 0]
    td = jax.lax.stop_gradient(target) - q_a
    mask = rows["mask"][:-1]
    # A window whose first row is an episode's trains on its burn-in as well; that one
    # alone knows nothing of a step before.
    starts = jnp.all(first["previous"] == 0)
    burning_in = (jnp.arange(td.shape[0]) < burn_in) & ~starts
    mask = mask * (1.0 - burning_in)
    priority = losses.sequence_priority(td, mask, 0.9)
    # How far the acted values are from the unrolled ones, on the last row as well.
    real = jnp.concatenate([jnp.ones(1), rows["mask"][:-1]])
    gap = jnp.max(jnp.abs(q - rows["q"]) * real[:, None])
    return jnp.sum(mask * td**2), (priority, gap, jnp.sum(mask))

  def loss(weights, sample):
    values, aux = jax.vmap(window_loss, (None, 0, 0))(
      weights, sample.rows, sample.first
    )
    return jnp.mean(values), aux

  def update(state, sample):
    (value, (priorities, gap, trained)), gradients = jax.value_and_grad(
      loss, has_aux=True
    )(state.weights, sample)
    weights = jax.tree.map(lambda w, g: w - learning_rate * g, state.weights, gradients)
    metrics = {
      "loss": value,
      "finite": jnp.isfinite(value).astype(jnp.float32),
      "gap": jnp.max(gap),
      "trained": jnp.mean(trained),
    }
    output = types.LearnerOutput(priorities, metrics)
    return LearnerState(weights, state.num_updates + 1), output

  return types.LearnerCore(init, update, lambda state: state.weights)


def make_agent(environment, learning_rate: float = 0.0) -> types.Agent:
  spec = factory.spec(environment)
  return types.Agent(
    config=None,
    spec=spec,
    encoding=specs.make_encoding(spec.observations),
    extras_spec={
      "policy": jax.ShapeDtypeStruct((), jnp.int32),
      "r_int": jax.ShapeDtypeStruct((), jnp.float32),
      "q": jax.ShapeDtypeStruct((A,), jnp.float32),
      "hidden": jax.ShapeDtypeStruct((H,), jnp.float32),
      "previous": jax.ShapeDtypeStruct((PREVIOUS,), jnp.float32),
    },
    actor=lambda evaluation=False: make_core(evaluation),
    learner=make_learner(learning_rate, burn_in=1),
    replay=types.ReplaySpec(
      capacity=40,
      min_size=4,
      batch_size=6,
      updates_per_step=1.0,
      burn_in=1,
      length=2,
      bootstrap=1,
      period=2,
      priority_exponent=0.9,
      extras=("policy", "r_int", "q"),
      first_row_extras=("hidden", "previous"),
    ),
    actor_update_period=3,
    policy_names=tuple(f"mixture {i}" for i in range(MIXTURE)),
  )


def make_environment(truncate: bool = False) -> standard.StandardEnvironment:
  fake = testing.FakeEnvironment(
    episode_length=7, truncate=truncate, reward=lambda t, action: 0.1 * t + action
  )
  return standard.StandardEnvironment(fake)


@pytest.fixture
def recorded(monkeypatch):
  """All that the runner's actor hands to its adder: (timestep, action, extras)."""
  rows: list[list[Any]] = []
  add_first = adder_lib.WindowAdder.add_first
  add, add_last = adder_lib.WindowAdder.add, adder_lib.WindowAdder.add_last

  def record_first(self, timestep):
    rows.append([timestep, None, None])
    add_first(self, timestep)

  def record(self, action, next_timestep, extras):
    rows[-1][1:] = [action, extras]
    rows.append([next_timestep, None, None])
    add(self, action, next_timestep, extras)

  def record_last(self, extras):
    rows[-1][2] = extras
    add_last(self, extras)

  monkeypatch.setattr(adder_lib.WindowAdder, "add_first", record_first)
  monkeypatch.setattr(adder_lib.WindowAdder, "add", record)
  monkeypatch.setattr(adder_lib.WindowAdder, "add_last", record_last)
  return rows


def run(agent, environment, replay="memory") -> tuple[core.Result, list[core.Episode]]:
  episodes: list[core.Episode] = []
  result = local.run(
    agent,
    environment,
    config_lib.RunConfig(seed=3, episodes=8, replay=replay),
    core.Hooks(on_episode=episodes.append),
  )
  return result, episodes


def test_runner_and_scan_do_the_same(recorded):
  environment = make_environment()
  agent = make_agent(environment)
  result, episodes = run(agent, environment)
  assert result.learner_updates > 0

  # The same keys, and the weights, which a learning rate of 0 has left as they were.
  actor_key, learner_key = jax.random.split(jax.random.PRNGKey(3))
  weights = agent.learner.params(agent.learner.init(learner_key))
  jax.tree.map(np.testing.assert_array_equal, weights, result.weights)
  core = agent.actor()
  timesteps, actions, extras = zip(*recorded, strict=True)
  steps_before = np.cumsum([0] + [not t.first() for t in timesteps[1:]])
  stacked = jax.tree.map(lambda *leaves: np.stack(leaves), *timesteps)

  # A second actor beside the first, whose episodes begin three steps later.
  shifted = jax.tree.map(lambda x: np.roll(x, 3, axis=0), stacked)
  both = jax.tree.map(lambda a, b: np.stack([a, b], axis=1), stacked, shifted)

  def step(states, x):
    timestep, env_steps = x
    params = types.ActorParams(weights, env_steps)
    action, states = jax.vmap(core.select_action, (None, 0, 0))(
      params, timestep, states
    )
    return states, (action, jax.vmap(core.extras)(states))

  states = jax.vmap(lambda i: core.init(actor_key, i, 2))(jnp.arange(2))
  _, (scanned, scanned_extras) = jax.jit(lambda s, xs: jax.lax.scan(step, s, xs))(
    states, (both, steps_before.astype(np.int32))
  )

  taken = [i for i, action in enumerate(actions) if action is not None]
  np.testing.assert_array_equal(scanned[taken, 0], [actions[i] for i in taken])
  for name in extras[0]:
    np.testing.assert_allclose(
      scanned_extras[name][:, 0], [e[name] for e in extras], rtol=1e-4, atol=1e-5
    )
  assert not np.array_equal(scanned[:, 0], scanned[:, 1])

  # Each episode follows one policy, whose name is reported.
  firsts = [i for i, t in enumerate(timesteps) if t.first()]
  followed = [int(extras[i]["policy"]) for i in firsts]
  assert [e.policy for e in episodes] == [f"mixture {i}" for i in followed]
  assert len(set(followed)) > 1
  for begin, policy in zip(firsts, followed, strict=True):
    assert {int(e["policy"]) for e in extras[begin : begin + 8]} == {policy}
    # The memory is empty at its start, and something is new on its last row.
    assert extras[begin]["r_int"] == 0.0 and extras[begin + 7]["r_int"] > 0.0
    np.testing.assert_array_equal(extras[begin]["hidden"], np.zeros(H))


@pytest.mark.parametrize(
  "replay", ["memory", pytest.param("reverb", marks=pytest.mark.reverb)]
)
@pytest.mark.parametrize("truncate", [False, True])
def test_unrolling_from_replay_repeats_what_was_acted(replay, truncate):
  """The stored state is the one before its row, and what lags, lags by one."""
  environment = make_environment(truncate)
  _, episodes = run(make_agent(environment), environment, replay=replay)
  gaps = [e.metrics["gap"] for e in episodes if e.metrics]
  trained = [e.metrics["trained"] for e in episodes if e.metrics]
  assert len(gaps) == 8 and max(gaps) < 1e-5
  assert all(1.0 <= t <= 3.0 for t in trained) and max(trained) > 2.0


def test_learning_moves_the_weights_that_actors_get():
  environment = make_environment()
  still, _ = run(make_agent(environment), environment)
  moved, episodes = run(make_agent(environment, learning_rate=1e-3), environment)
  assert np.isfinite([e.metrics["loss"] for e in episodes]).all()
  for name in ("input", "recurrent", "head"):
    assert not np.array_equal(still.weights[name], moved.weights[name])
  # Now that weights change, what was acted with them is not what they say today.
  assert episodes[-1].metrics["gap"] > 1e-4


def test_evaluation_has_a_policy_of_its_own():
  environment = make_environment()
  agent = make_agent(environment)
  builder = builder_lib.Builder(agent)
  replay = builder.make_replay_tables("memory", 0)
  learner = builder.make_learner(jax.random.PRNGKey(0), replay.batches(), replay)
  histories = []
  for seed in range(3):
    key = jax.random.PRNGKey(seed)
    actor = builder.make_actor(key, learner, evaluation=True)
    actions = []
    for _ in range(2):
      timestep = environment.reset()
      actor.observe_first(timestep)
      while not timestep.last():
        actions.append(int(actor.select_action(timestep.observation)))
        timestep = environment.step(actions[-1])
        actor.observe(actions[-1], timestep)
        assert actor.policy == 0
    histories.append(actions)
  assert histories[0] == histories[1] == histories[2]  # Nothing is left to chance.
  assert histories[0][:7] == histories[0][7:]  # And nothing to the episode before.
