"""bsuite: every id, its seeds, its record, its metrics."""

import os

import numpy as np
import pytest
from bsuite import bsuite, sweep
from bsuite.logging import csv_load

from explorax import environments
from explorax.environments import specs, testing

EXPERIMENTS = sorted(bsuite.EXPERIMENT_NAME_TO_ENVIRONMENT)
WITHOUT_DATA = [name for name in EXPERIMENTS if not name.startswith("mnist")]


@pytest.mark.parametrize("experiment", WITHOUT_DATA)
def test_every_id_loads_and_steps(experiment, capsys):
  ids = [i for i in sweep.SWEEP if i.partition("/")[0] == experiment]
  assert len(ids) >= 17
  for bsuite_id in ids:
    environment = environments.make(f"bsuite:{bsuite_id}", seed=0)
    environment.observation_spec().validate(environment.reset().observation)
    environment.observation_spec().validate(environment.step(0).observation)
    is_one_hot = isinstance(environment.observation_spec(), specs.OneHotArray)
    assert is_one_hot == experiment.startswith("deep_sea")
  assert capsys.readouterr().out == ""


@pytest.mark.parametrize("name", ["deep_sea/2", "deep_sea_stochastic/2"])
def test_the_mapping_is_bsuites_for_every_seed(name):
  standard_task = bsuite.load_from_id(name)._action_mapping
  for seed in (0, 1):
    raw = environments.make(f"bsuite:{name}", seed=seed).raw
    np.testing.assert_array_equal(raw._action_mapping, standard_task)


def test_the_optimal_policy_of_deep_sea_gets_its_return():
  environment = environments.make("bsuite:deep_sea/0", seed=0)
  mapping = environment.raw._action_mapping
  encode = environments.make_encoding(environment.observation_spec())
  timestep, total = environment.reset(), 0.0
  while not timestep.last():
    state = encode.spec.entries[encode(timestep.observation)]
    timestep = environment.step(mapping.flat[state])
    total += timestep.reward
  assert total == pytest.approx(0.99, abs=1e-6)
  assert encode(timestep.observation) == -1
  assert environments.episode_metrics(environment) == {
    "total_bad_episodes": 0.0,
    "denoised_return": 1.0,
  }


def test_noise_layers_have_streams_of_their_own():
  raw = environments.make("bsuite:cartpole_noise/0", seed=5).raw
  outer, inner = raw._rng.uniform(size=8), raw._env._rng.uniform(size=8)
  assert not np.isclose(outer, inner).any()


def test_metrics_count_bad_episodes():
  environment = environments.make("bsuite:deep_sea/0", seed=0)
  wrong = 1 - environment.raw._action_mapping[0, 0]
  for episode in (1, 2):
    environment.reset()
    timestep = environment.step(wrong)
    while not timestep.last():
      timestep = environment.step(0)
    metrics = environments.episode_metrics(environment)
    assert metrics["total_bad_episodes"] == episode
    assert all(type(value) is float for value in metrics.values())


class Counting(testing.FakeEnvironment):
  def episode_metrics(self):
    return {"coins": np.float32(2.0), "keys": 1}


def test_an_environment_may_count_for_itself_and_most_count_nothing():
  for environment in (Counting(), environments.wrap(Counting(), seed=0)):
    metrics = environments.episode_metrics(environment)
    assert metrics == {"coins": 2.0, "keys": 1.0}
    assert all(type(value) is float for value in metrics.values())
  for name in ("gym:CartPole-v1", "explorax.environments.testing:fake"):
    assert environments.episode_metrics(environments.make(name, seed=0)) == {}


def _run_episodes(environment, episodes):
  for _ in range(episodes):
    timestep = environment.reset()
    while not timestep.last():
      timestep = environment.step(0)


def test_the_record_is_one_that_bsuite_reads(tmp_path):
  environment = environments.make(
    "bsuite:deep_sea/0", seed=0, record_to=str(tmp_path / "bsuite")
  )
  _run_episodes(environment, 3)
  frame, _ = csv_load.load_bsuite(str(tmp_path / "bsuite"))
  assert list(frame.episode) == [1, 2, 3]
  assert list(frame.steps) == [10, 20, 30]
  assert set(frame.bsuite_id) == {"deep_sea/0"}
  last = frame.total_bad_episodes.iloc[-1]
  assert last == environments.episode_metrics(environment)["total_bad_episodes"]


def test_a_record_changes_nothing_and_is_not_overwritten(tmp_path, monkeypatch):
  def observations(record_to):
    environment = environments.make(
      "bsuite:deep_sea_stochastic/0", seed=4, record_to=record_to
    )
    return [environment.step(1).observation for _ in range(60)]

  np.testing.assert_array_equal(observations(None), observations(str(tmp_path)))
  with pytest.raises(ValueError, match="already holds a recording"):
    observations(str(tmp_path))
  file = tmp_path / "file"
  file.write_text("")
  with pytest.raises(ValueError, match="cannot make the folder"):
    observations(str(file / "below"))
  monkeypatch.setattr(os, "access", lambda path, mode: False)
  with pytest.raises(ValueError, match="is not writable"):
    environments.make("bsuite:deep_sea/0", seed=0, record_to=str(tmp_path))


@pytest.mark.parametrize(
  ("name", "message"),
  [
    ("deep_sea/21", "settings 'bsuite:deep_sea/0' to 'bsuite:deep_sea/20'"),
    ("deep_sea", "settings 'bsuite:deep_sea/0' to 'bsuite:deep_sea/20'"),
    ("deepsea/0", "did you mean 'bsuite:deep_sea/0'"),
    ("qqqqqqqqqq", "for instance 'bsuite:deep_sea/0'"),
  ],
)
def test_unknown_ids_are_refused(name, message):
  with pytest.raises(ValueError, match=message):
    environments.make(f"bsuite:{name}", seed=0)


def _solved(rule, bad):
  """The rule's answer for a sequence of good (0) and bad (1) episodes."""
  total = 0
  for episode, is_bad in enumerate(bad, start=1):
    total += is_bad
    rule.update(episode, total)
  return rule.solved_episode


@pytest.mark.parametrize(
  ("bad", "solved"),
  [
    ([1, 1, 1, 1], None),
    ([0], 1),
    ([1, 0], 2),
    ([1] * 9 + [0], None),  # An average of exactly 0.9 is not below it.
    ([1] * 9 + [0, 0], 11),
    ([1] * 8 + [0, 1, 1, 1], 9),  # It stays solved.
  ],
)
def test_solved_rule(bad, solved):
  assert _solved(environments.SolvedRule(), bad) == solved


def test_solved_rule_is_bsuites_own_on_random_episodes():
  """Whether the environment counts bad episodes over its life, or one at a time."""
  rng = np.random.default_rng(0)
  for _ in range(20):
    bad = (rng.uniform(size=200) < np.linspace(1.0, 0.3, 200)).astype(int)
    (below,) = np.nonzero(np.cumsum(bad) / np.arange(1, 201) < 0.9)
    expected = int(below[0]) + 1 if len(below) else None
    accumulated, counting = environments.SolvedRule(), environments.SolvedRule()
    for episode, is_bad in enumerate(bad, start=1):
      total = float(bad[:episode].sum())
      accumulated.add_episode(episode, {"total_bad_episodes": total})
      counting.add_episode(episode, {"bad_episode": float(is_bad)})
      counting.add_episode(episode, {"coverage": 1.0})
    assert accumulated.solved_episode == counting.solved_episode == expected
  with pytest.raises(ValueError, match="is impossible"):
    environments.SolvedRule().update(3, 4)


def test_by_the_treasure_is_bsuites_rule_where_nothing_is_random():
  rng = np.random.default_rng(1)
  for _ in range(20):
    rule, treasures = environments.SolvedRule(), 0.0
    for episode in range(1, 201):
      treasure = float(rng.uniform() < episode / 800)
      treasures += treasure
      metrics = {"bad_episode": 1 - treasure, "denoised_return": treasure}
      rule.add_episode(episode, metrics)
      assert rule.treasure_episode == rule.solved_episode
      assert rule.treasure_rate == treasures / episode


@pytest.mark.parametrize("env", ["bsuite:deep_sea_stochastic/0", "bsuite:deep_sea/0"])
def test_right_on_three_diagonal_positions_is_solved_and_finds_no_treasure(env):
  """In the stochastic sea by bsuite's rule; by the treasure, only with the treasure."""
  environment = environments.make(env, seed=0)
  mapping = environment.raw._action_mapping
  rates = {}
  for steps_right in (3, 10):
    rule = environments.solved_rule(env)
    before = environments.episode_metrics(environment)
    for episode in range(1, 1001):
      timestep, row = environment.reset(), 0
      while not timestep.last():
        column = environment.raw._column
        right = row == column and row < steps_right
        action = mapping[row, column] if right else 1 - mapping[row, column]
        timestep = environment.step(int(action))
        row += 1
      now = environments.episode_metrics(environment)
      rule.add_episode(episode, {name: now[name] - before[name] for name in now})
    solved = rule.solved_episode is not None, rule.treasure_episode is not None
    rates[steps_right] = rule.treasure_rate, *solved
  stochastic = "stochastic" in env
  assert rates[3] == (0.0, stochastic, False)
  rate, *solved = rates[10]
  assert solved == [True, True]
  # The best policy's: nine moves, of which each fails with probability 1/10.
  best = 0.9**9 if stochastic else 1.0
  assert environments.solved_rule(env).best_rate == pytest.approx(best)
  assert rate == pytest.approx(best, abs=5 * (0.25 / 1000) ** 0.5 * stochastic)


def test_luck_before_the_first_update_solves_nothing():
  rule = environments.SolvedRule()
  good, bad = ({"bad_episode": x, "denoised_return": 1 - x} for x in (0.0, 1.0))
  for episode, metrics in enumerate([good, good, bad, bad], start=1):
    rule.add_episode(episode, metrics, has_learnt=episode > 3)
    assert (rule.solved_episode is None) == (episode <= 3)
  assert (rule.solved_episode, rule.treasure_episode) == (4, 4)
  assert rule.treasure_rate == 0.5


def test_the_treasure_is_not_known_of_every_environment():
  rule = environments.SolvedRule()
  rule.add_episode(1, {"bad_episode": 0.0})
  assert rule.solved_episode == 1 and rule.treasure_episode is None
  assert np.isnan(rule.treasure_rate)
  with pytest.raises(ValueError, match="best_rate is 0"):
    environments.SolvedRule(best_rate=0.0)


def test_solved_rule_by_name():
  assert environments.solved_rule("bsuite:deep_sea/0").threshold == 0.9
  stochastic = environments.solved_rule("bsuite:deep_sea_stochastic/3")
  assert _solved(stochastic, [0] * 120) == 100
  stochastic = environments.solved_rule("bsuite:deep_sea_stochastic/3")
  assert _solved(stochastic, [1] * 96 + [0] * 25) == 121
  assert environments.solved_rule("jax:deep_sea/7").threshold == 0.9
  twin = environments.solved_rule("jax:deep_sea/7,stochastic=true")
  assert (twin.threshold, twin.min_episode) == (0.8, 100)
  assert twin.best_rate == pytest.approx((6 / 7) ** 6)
  assert environments.solved_rule("bsuite:catch/0") is None
  assert environments.solved_rule("jax:chain/20") is None
  assert environments.solved_rule("gym:CartPole-v1") is None
