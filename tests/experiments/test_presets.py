"""Every preset: what it is called, what it is made of, and what its paper says."""

import dataclasses
import importlib
import importlib.util
import inspect
import itertools
import pathlib
import re

import dm_env
import haiku as hk
import jax
import numpy as np
import optax
import pytest

from explorax import exploration, losses
from explorax.agents.bonuses import counts, infogain, pseudo_counts, qu, rnd, td_error
from explorax.agents.bonuses import tdu as tdu_lib
from explorax.agents.dqn import config as dqn_config
from explorax.agents.r2d2 import config as r2d2_config
from explorax.agents.targets import categorical, off_policy, one_step
from explorax.agents.targets import types as target_types
from explorax.environments import specs
from explorax.experiments import overrides, presets

SPEC = specs.EnvironmentSpec(
  specs.OneHotArray((10, 10), "observation"), dm_env.specs.DiscreteArray(2)
)
NAMES = list(presets.PRESETS)


def config(name: str) -> dqn_config.DQNConfig:
  return presets.PRESETS[name].config


def on_atari(name: str) -> dqn_config.DQNConfig:
  return presets.PRESETS[name].config_for("atari:Pong")


def test_names():
  assert all(preset.name == name for name, preset in presets.PRESETS.items())


@pytest.mark.parametrize("name", NAMES)
def test_says_where_it_comes_from(name):
  preset = presets.PRESETS[name]
  assert re.search(r"\b(19|20)\d\d\b", preset.paper)
  assert preset.summary and len(preset.summary) < 88 and preset.summary[-1] != "."


@pytest.mark.parametrize("name", NAMES)
def test_makes_an_agent_of_the_config(name):
  preset = presets.PRESETS[name]
  agent = preset.make_agent(preset.config, SPEC)
  assert agent.config == preset.config
  policies = getattr(preset.config, "num_policies", 1)
  size = getattr(preset.config, "ensemble_size", 1)
  assert len(agent.policy_names) == max(size, policies)


@pytest.mark.parametrize("name", NAMES)
def test_can_be_written_down_and_changed(name):
  preset = presets.PRESETS[name]
  assert overrides.to_dict(preset.config)["class"] == type(preset.config).__name__
  changed = overrides.apply(preset.config, ["batch_size=7"])
  assert changed == dataclasses.replace(preset.config, batch_size=7)


def test_no_two_are_the_same():
  configs = [preset.config for preset in presets.PRESETS.values()]
  assert len(set(configs)) == len(configs)


def bsuite_arguments(monkeypatch, package: str, agent: str) -> dict:
  """What the `default_agent` of one of bsuite's JAX baselines makes its agent of."""
  module = importlib.import_module(f"bsuite.baselines.jax.{package}.agent")
  given = {}
  monkeypatch.setattr(module, agent, lambda **arguments: given.update(arguments))
  module.default_agent(dm_env.specs.Array((10, 10), "float32"), SPEC.actions)
  return given


def network_of(given: dict) -> tuple[list[tuple[int, ...]], dict]:
  """The shapes of the network's weights in their order, and what it closes over."""
  network = hk.without_apply_rng(hk.transform(given["network"]))
  params = jax.eval_shape(network.init, jax.random.PRNGKey(0), np.zeros((1, 10, 10)))
  shapes = [layer["w"].shape for _, layer in sorted(params.items())]
  return shapes, dict(inspect.getclosurevars(given["network"]).nonlocals)


def assert_same_optimizer(given: dict, ours: dqn_config.DQNConfig) -> None:
  """Both make the same updates of the same gradients."""
  adam = optax.adam(ours.learning_rate, b2=ours.adam_b2, eps=ours.adam_eps)
  gradients = np.float32([1e-9, -1e-3, 5.0])
  states = [each.init(gradients) for each in (given["optimizer"], adam)]
  for scale in (1.0, 10.0, -0.1):
    updates = []
    for i, each in enumerate((given["optimizer"], adam)):
      update, states[i] = each.update(scale * gradients, states[i])
      updates.append(update)
    np.testing.assert_array_equal(*updates)


# Ours → bsuite's, where the names differ; the discount is checked with the rest.
SHARED = {
  "batch_size": "batch_size",
  "discount": "discount",
  "replay_capacity": "replay_capacity",
  "min_replay_size": "min_replay_size",
  "target_update_period": "target_update_period",
}


def test_bsuites_own_agents(monkeypatch):
  """Each setting is that of bsuite's `default_agent`, read from the package itself."""
  given = bsuite_arguments(monkeypatch, "dqn", "DQN")
  dqn = config("dqn")
  assert {name: getattr(dqn, name) for name in SHARED} == {
    name: given[theirs] for name, theirs in SHARED.items()
  }
  assert dqn.updates_per_step == 1 / given["sgd_period"]
  assert dqn.exploration == exploration.EpsilonGreedy(given["epsilon"])
  shapes, _ = network_of(given)
  sizes = (100, *dqn.hidden_sizes, 2)
  assert shapes == list(itertools.pairwise(sizes))
  assert_same_optimizer(given, dqn)
  rest = {"obs_spec", "action_spec", "network", "optimizer", "rng"}
  assert set(given) == {*SHARED.values(), *rest, "sgd_period", "epsilon"}
  # What bsuite's has no setting for, as far as it decides what is learnt.
  plain = {"target": one_step.QLearning(), "bonus": None, "n_step": 1, "num_members": 1}
  plain |= {"max_abs_td": None, "max_gradient_norm": None, "priority_exponent": 0.0}
  assert {name: getattr(dqn, name) for name in plain} == plain

  given = bsuite_arguments(monkeypatch, "boot_dqn", "BootstrappedDqn")
  shapes, closure = network_of(given)
  for name in ("bootstrapped_dqn", "tdu", "qu", "double_dqn", "dqn_rnd", "noisy_dqn"):
    ours = config(name)
    assert {each: getattr(ours, each) for each in SHARED} == {
      each: given[theirs] for each, theirs in SHARED.items()
    }
    assert ours.updates_per_step == 1 / given["sgd_period"]
    assert (ours.mask_prob, given["noise_scale"]) == (given["mask_prob"], 0.0)
    sizes = (100, *ours.hidden_sizes, 2)
    assert shapes == 2 * list(itertools.pairwise(sizes))  # And the prior's.
    assert_same_optimizer(given, ours)
  bootstrapped = config("bootstrapped_dqn")
  assert bootstrapped.num_members == given["num_ensemble"] == 20
  assert bootstrapped.exploration == exploration.Thompson()
  assert [given["epsilon_fn"](step) for step in (0, 10**6)] == [0.0, 0.0]
  # The one difference, from paper 4's appendix D.2.
  assert (closure["prior_scale"], bootstrapped.prior_scale) == (5.0, 3.0)


def test_no_other_preset_is_named_after_one_of_bsuites_agents():
  folder = importlib.util.find_spec("bsuite.baselines.jax").submodule_search_locations
  agents = {path.name for path in pathlib.Path(folder[0]).iterdir() if path.is_dir()}
  assert {"dqn", "boot_dqn"} <= agents
  assert {*agents, "random", "popart_dqn"} & {*NAMES} == {"dqn"}


def test_tdu_and_its_ablations():
  tdu = config("tdu")
  assert (tdu.num_members, tdu.num_explorers, tdu.prior_scale) == (10, 10, 3.0)
  assert (tdu.beta, tdu.bonus) == (1.0, tdu_lib.TDUncertainty())
  assert tdu.exploration == exploration.Thompson()
  assert config("tdu_bandit") == dataclasses.replace(
    tdu, exploration=exploration.Ucb1(scale=8.0)
  )
  assert config("qu") == dataclasses.replace(tdu, bonus=qu.QUncertainty())
  # β = 0 is Bootstrapped DQN, whose members are as many.
  bootstrapped = config("bootstrapped_dqn")
  assert bootstrapped.ensemble_size == tdu.ensemble_size
  assert config("q_ucb") == dataclasses.replace(
    bootstrapped, exploration=exploration.Ucb(1.0, ddof=1, of=exploration.Thompson())
  )
  assert config("bootstrapped_dqn_no_prior") == dataclasses.replace(
    bootstrapped, prior_scale=0.0
  )


@pytest.mark.parametrize("name", ["tdu_r2d2", "tdu_r2d2_no_prior"])
def test_the_l_variants_have_a_tenth_of_the_bonus(name):
  for of in (config, on_atari):
    assert of(f"{name}_l") == dataclasses.replace(of(name), beta=0.1)
    assert of(name).beta == 1.0


def test_the_epinet_of_the_public_bsuite_agent():
  """Index dimension, samples and prior as in enn_acme's experiments/bsuite/run.py."""
  epinet = {"index_dim": 2, "num_members": 20, "prior_scale": 1.0}
  epinet |= {"max_abs_reward": 1.0, "exploration": exploration.Thompson()}
  assert config("epinet") == dataclasses.replace(dqn_config.DQNConfig(), **epinet)
  assert config("epinet").epinet_hidden_sizes == (50,)
  assert on_atari("epinet") == dataclasses.replace(on_atari("dqn"), **epinet)


def test_the_ucb_ensembles():
  for name in ("ensemble_voting", "ucb", "ucb_infogain"):
    ensemble = config(name)
    assert (ensemble.num_members, ensemble.shared_torso) == (10, True)
    assert (ensemble.target, ensemble.num_explorers) == (one_step.DoubleQ(), 0)
  assert config("ensemble_voting").exploration == exploration.MajorityVote()
  assert config("ucb").exploration == exploration.Ucb(scale=0.1)
  assert config("ucb_infogain") == dataclasses.replace(
    config("ucb"), bonus=infogain.InfoGain(temperature=1.0), beta=1.0
  )


def test_the_variants_of_dqn_differ_in_one_thing():
  dqn, small = config("dqn"), dqn_config.DQNConfig()
  assert dqn == dataclasses.replace(
    small, hidden_sizes=(64, 64), batch_size=32, min_replay_size=100
  )
  assert config("double_dqn") == dataclasses.replace(small, target=one_step.DoubleQ())
  ez = config("dqn_ez").exploration
  assert config("dqn_ez") == dataclasses.replace(dqn, exploration=ez)
  assert ez == exploration.EzGreedy(
    dqn.exploration.epsilon, duration=exploration.ZetaDuration(2.0, 10_000)
  )
  for name, bonus in (("dqn_rnd", rnd.RND()), ("dqn_counts", counts.Counts())):
    assert config(name) == dataclasses.replace(small, bonus=bonus, beta=0.1)


def test_the_explorer_and_the_noise_of_paper_4s_baselines():
  dqn = dqn_config.DQNConfig()
  assert config("qex") == dataclasses.replace(
    dqn,
    num_explorers=1,
    explorers_see_reward=False,
    bonus=td_error.AbsoluteTDError(),
    beta=1.0,
    exploration=exploration.EpsilonGreedy(
      dqn.exploration.epsilon, of=exploration.Thompson()
    ),
  )
  for base, noisy in (
    (dqn, config("noisy_dqn")),
    (on_atari("dqn"), on_atari("noisy_dqn")),
  ):
    assert noisy == dataclasses.replace(
      base, noisy_sigma=0.5, noisy_torso=True, exploration=exploration.Greedy()
    )
  # Convolutions have no noise, and the linear layers are the same two as DQN's.
  assert on_atari("noisy_dqn").hidden_sizes == (512,)


def test_successor_uncertainties_have_their_published_settings():
  """Those of its authors on Deep Sea, which Table 3 of paper 4 has among others."""
  successor = config("successor_uncertainties")
  assert successor.feature_size == 20
  assert (successor.prior_variance, successor.likelihood_variance) == (1.0, 0.01)
  assert (successor.hidden_sizes, successor.psi_hidden_sizes) == ((20,), ())
  shared = (
    "discount",
    "learning_rate",
    "target_update_period",
    "replay_capacity",
    "min_replay_size",
    "batch_size",
    "updates_per_step",
  )
  for name in shared:
    assert getattr(successor, name) == getattr(config("bootstrapped_dqn"), name)


def test_paper_3_table_1():
  """What all agents of paper 3 have in common on Atari."""
  names = ("double_dqn", "bootstrapped_dqn_no_prior", "ensemble_voting", "ucb")
  expected = {
    "batch_size": 32,
    "replay_capacity": 1_000_000,
    "target_update_period": 10_000,
    "discount": 0.99,
    "updates_per_step": 1 / 4,
    "adam_b2": 0.99,
    "adam_eps": 1e-4,
    "min_replay_size": 50_000,
    "random_steps": 50_000,
    "target": one_step.DoubleQ(),
  }
  for name in (*names, "ucb_infogain"):
    atari = on_atari(name)
    assert {key: getattr(atari, key) for key in expected} == expected
    # The rate begins to fall at action 10⁶ and is low at 5 · 10⁶.
    rate = atari.learning_rate
    assert (rate.start, rate.end) == (1e-4, 5e-5)
    assert 50_000 + 4 * rate.begin == 1_000_000
    assert 50_000 + 4 * (rate.begin + rate.steps) == 5_000_000
  double_dqn = on_atari("double_dqn")
  assert double_dqn.exploration == exploration.EpsilonGreedy(
    exploration.Piecewise((1.0, 0.1, 0.01), (1_000_000, 5_000_000))
  )
  assert on_atari("dqn") == dataclasses.replace(double_dqn, target=one_step.QLearning())
  ensembles = {"num_members": 10, "shared_torso": True, "hidden_sizes": ()}
  ensembles["sum_over_members"] = True  # Section 2.4; paper 4's have their mean.
  for name in (*names[1:], "ucb_infogain"):
    values = dataclasses.asdict(on_atari(name))
    assert {key: values[key] for key in ensembles} == ensembles
    assert on_atari(name).exploration == config(name).exploration


def test_rainbow_as_published():
  atari = on_atari("rainbow")
  expected = {
    "replay_capacity": 1_000_000,
    "min_replay_size": 80_000 // 4,  # Frames.
    "learning_rate": 0.0000625,
    "adam_eps": 1.5e-4,
    "noisy_sigma": 0.5,
    "target_update_period": 32_000 // 4 // 4,  # Frames, and actions an update.
    "priority_exponent": 0.5,
    "importance_exponent": exploration.Linear(
      0.4, 1.0, steps=(200_000_000 - 80_000) // 4 // 4
    ),
    "n_step": 3,
    "discount": 0.99,
    "batch_size": 32,
    "max_abs_reward": 1.0,
    "duelling": True,
    "target": categorical.CategoricalDoubleQ(num_atoms=51, max_abs_value=10.0),
    "exploration": exploration.Greedy(),
  }
  assert {key: getattr(atari, key) for key in expected} == expected


@pytest.mark.parametrize("name", ["rainbow_epsilon", "rainbow_ez"])
def test_rainbow_explores_on_top_of_its_noise(name):
  for get in (config, on_atari):
    rule = get(name).exploration
    assert get(name) == dataclasses.replace(get("rainbow"), exploration=rule)
  rule = on_atari(name).exploration
  assert rule.epsilon == exploration.Linear(1.0, 0.01, steps=4_000_000 // 4)  # Frames.
  if name == "rainbow_ez":
    assert rule.duration == exploration.ZetaDuration(cap=100)


def test_rainbow_cts_differs_as_its_paper_says():
  for get in (config, on_atari):
    cts, rainbow = get("rainbow_cts"), get("rainbow")
    assert cts == dataclasses.replace(
      rainbow,
      noisy_sigma=0.0,
      n_step=5,
      target_update_period=1,
      bonus=pseudo_counts.PseudoCounts(),
      beta=cts.beta,
      exploration=get("rainbow_epsilon").exploration,
    )
  assert on_atari("rainbow_cts").beta == 0.0005


def test_rainbow_without_its_parts_is_double_dqn():
  plain = config("double_dqn")
  parts = {
    "head_size": 0,
    "duelling": False,
    "noisy_sigma": 0.0,
    "n_step": 1,
    "priority_exponent": 0.0,
    "importance_exponent": 0.0,
    "target": one_step.DoubleQ(),
    "exploration": plain.exploration,
    "hidden_sizes": plain.hidden_sizes,
  }
  rainbow = config("rainbow")
  assert all(getattr(rainbow, name) != value for name, value in parts.items())
  assert dataclasses.replace(rainbow, **parts) == plain


@pytest.mark.parametrize("name", ["tdu", "tdu_bandit", "qu", "q_ucb", "qex"])
def test_ensembles_are_heads_on_atari_and_explore_as_elsewhere(name):
  own = ("num_members", "num_explorers", "explorers_see_reward", "prior_scale")
  own = (*own, "bonus", "beta", "exploration")
  heads = {field: getattr(config(name), field) for field in own}
  heads["sum_over_members"] = False  # Paper 4's algorithm 2.
  assert on_atari(name) == dataclasses.replace(on_atari("ucb"), **heads)


@pytest.mark.parametrize("name", presets.PRESETS)
def test_settings_on_atari(name):
  preset = presets.PRESETS[name]
  for environment in ("bsuite:deep_sea/0", "jax:catch"):
    assert preset.config_for(environment) is preset.config
  for environment in ("atari_like:make", "gymnax:CartPole-v1"):
    assert preset.config_for(environment) is preset.config_for("gym:CartPole-v1")
  on_games = preset.config_for("atari:Pong")
  assert on_games is preset.on.get("atari:", preset.config)
  assert type(on_games) is type(preset.config)
  for there in preset.on.values():
    assert there != preset.config


@pytest.mark.parametrize("name", presets.PRESETS)
def test_on_gymnasium_agents_learn_otherwise_but_are_the_same(name):
  preset = presets.PRESETS[name]
  there, small = preset.config_for("gym:CartPole-v1"), preset.config
  if name == "successor_uncertainties":
    assert there is small
    return
  assert there.min_replay_size == 1_000
  assert there.max_abs_reward is None
  assert there.learning_rate(0) > 4 * there.learning_rate(50_000)
  # How returns are cut, and over which values atoms are spread, may differ.
  assert type(there.target) is type(small.target)
  assert getattr(there.target, "max_abs_value", 100.0) == 100.0
  rule, own = there.exploration, small.exploration
  if hasattr(rule, "epsilon"):
    assert rule.epsilon(0) == 1.0 and rule.epsilon(8_000) == pytest.approx(0.04)
    own = dataclasses.replace(own, epsilon=rule.epsilon)
  assert rule == own
  kept = ("discount", "num_members", "num_explorers", "bonus", "beta", "prior_scale")
  kept = (*kept, "head_size", "mask_prob", "priority_exponent")
  assert all(getattr(there, field) == getattr(small, field) for field in kept)


@pytest.mark.parametrize(
  ("name", "profile"),
  [
    ("dqn", "dqn"),
    ("rainbow", "dqn,life_loss=true"),
    ("rainbow_cts", "dqn,life_loss=true"),
    ("dqn_ez", "dqn"),
    ("r2d2", "ngu"),
    ("ngu", "ngu"),
    ("r2d2_sarsa_lambda", "rgb"),
    ("bootstrapped_r2d2", "rgb"),
    ("retrace_dqn", "dqn,life_loss=true"),
  ],
)
def test_each_sees_atari_as_its_paper_does(name, profile):
  preset = presets.PRESETS[name]
  assert preset.environment_for("atari:Pong") == f"atari:Pong/{profile}"
  for said in ("atari:Pong/rgb", "atari:Pong/sticky=0.25", "bsuite:deep_sea/0"):
    assert preset.environment_for(said) == said


@pytest.mark.parametrize("name", ["retrace_dqn", "tree_backup_dqn", "harutyunyan_dqn"])
def test_paper_5_evaluates_the_policy_that_explores(name):
  """ε-greedy in the online network, with the values of the target network."""
  config = on_atari(name)
  assert config.exploration == exploration.EpsilonGreedy(exploration.Alternating())
  target = dataclasses.replace(config.target, lambda_=0.0)  # No trace: π by itself.
  rng = np.random.default_rng(1)
  q_tm1, q_t, online = rng.normal(size=(3, 40, 4)).astype(np.float32)
  assert np.mean(np.argmax(q_t, axis=1) != np.argmax(online, axis=1)) > 0.5
  a_tm1, a_t = rng.integers(4, size=(2, 40)).astype(np.int32)
  r_t, ones, epsilon = rng.normal(size=40).astype(np.float32), np.ones(40), 0.3
  expected = []
  for t in range(40):
    pi = [epsilon / 4 + (1 - epsilon) * (a == np.argmax(online[t])) for a in range(4)]
    values = sum(p * q for p, q in zip(pi, q_t[t], strict=True))
    expected.append(r_t[t] + 0.9 * values - q_tm1[t, a_tm1[t]])
  found = target.td_errors(
    target_types.Predictions(q_tm1, q_t, online),
    target_types.Stream(
      *(a_tm1, a_t, r_t, np.full(40, 0.9, np.float32)),
      *(np.full(40, 0.25, np.float32), ones.astype(np.float32), np.float32(epsilon)),
    ),
    losses.identity_pair,
  )
  np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


def test_paper_5s_settings():
  """Appendix F, sixteen threads together; 16 rows are 16 transitions."""
  control = on_atari("one_step_dqn")
  for name in ("retrace_dqn", "tree_backup_dqn", "harutyunyan_dqn"):
    config = on_atari(name)
    assert config.target.lambda_ == (0.5 if name == "harutyunyan_dqn" else 1.0)
    assert (config.batch_size, config.sequence_length) == (4, 16)
    assert (
      dataclasses.replace(
        config,
        target=control.target,
        learning_rate=control.learning_rate,
        optimizer_eps=1e-3,
      )
      == control
    )
    assert (config.optimizer, config.optimizer_eps) == ("rmsprop", 3.68e-5)
    assert config.learning_rate == exploration.Linear(9.12e-5, 0.0, steps=4_687_500)
  assert control.learning_rate == exploration.Linear(4.39e-5, 0.0, steps=4_687_500)
  # The step sizes are 0 after 3 · 10⁸ frames.
  assert 4_687_500 / control.updates_per_step * 4 == 3e8
  assert (control.replay_capacity, control.max_abs_reward) == (16 * 62_500, 1.0)
  assert (control.max_abs_td, control.mean_over_time) == (1.0, True)
  schedule = control.exploration.epsilon
  assert schedule.decay_steps * 4 / 16 == 250_000
  assert schedule.period_steps * 4 / 16 == 50_000


def test_never_give_up_is_paper_2s():
  """Table 6, and table 7 for the Disco Maze."""
  ngu = on_atari("ngu")
  assert (ngu.num_policies, ngu.beta, ngu.cross_mixture_ratio) == (32, 0.3, 0.0)
  assert (ngu.discount, ngu.min_discount) == (0.997, 0.99)
  assert (ngu.learning_rate, ngu.optimizer_eps, ngu.max_gradient_norm) == (
    (1e-4, 1e-4, 40.0)
  )
  assert (ngu.sequence_length, ngu.sequence_period, ngu.burn_in) == (80, 40, 0)
  assert (ngu.batch_size, ngu.priority_exponent, ngu.priority_eta) == (64, 0.9, 0.9)
  assert ngu.target == off_policy.Retrace(lambda_=0.95, epsilon=0.01)
  assert (ngu.transform_eps, ngu.evaluation_epsilon) == (1e-3, 0.01)
  assert (ngu.replay_capacity, ngu.min_replay_size) == (5_000_000, 6250 * 40)
  assert (ngu.actor_update_period, ngu.target_update_period) == (100, 1500)
  bonus = ngu.bonus
  assert (bonus.memory_capacity, bonus.num_neighbors) == (30_000, 10)
  assert (bonus.kernel_epsilon, bonus.cluster_distance) == (1e-4, 8e-3)
  assert (bonus.pseudo_count, bonus.max_similarity) == (1e-3, 8.0)
  assert (bonus.embedding_learning_rate, bonus.rnd_learning_rate) == (5e-4, 5e-4)
  assert (bonus.embedding_l2, bonus.max_modulation) == (1e-5, 5.0)
  assert (bonus.optimizer_eps, bonus.max_gradient_norm) == (1e-4, 40.0)
  baseline = on_atari("r2d2_rnd").bonus
  assert (baseline.optimizer_eps, baseline.max_gradient_norm) == (1e-4, 40.0)
  assert (baseline.learning_rate, baseline.num_trained) == (5e-4, 5)
  maze = presets.PRESETS["ngu"].config_for("jax:disco_maze/21")
  assert (maze.num_policies, maze.beta, maze.target.lambda_) == (1, 0.5, 0.97)
  assert (maze.sequence_length, maze.sequence_period) == (50, 50)
  assert (maze.transform_eps, maze.target_update_period) == (None, 100)
  assert (maze.bonus.memory_capacity, maze.bonus.kernel_epsilon) == (5000, 0.01)
  assert (maze.learning_rate, maze.bonus.embedding_learning_rate) == (1e-3, 1e-3)
  baseline = presets.PRESETS["r2d2_rnd"].config_for("jax:disco_maze/21")
  # "R2D2 and Action prediction": not RND, here and in NGU.
  assert (baseline.learning_rate, baseline.bonus.learning_rate) == (1e-3, 5e-4)
  assert maze.bonus.rnd_learning_rate == 5e-4
  assert dataclasses.replace(baseline, bonus=maze.bonus) == maze


def test_paper_1s_rnd_has_the_network_of_dqn():
  """Appendix C, on 210×160 RGB, where the agent's own convolutions are others."""
  frames = dm_env.specs.Array((210, 160, 3), np.uint8)
  bonus = on_atari("r2d2_sarsa_lambda_rnd").bonus.build(frames, 18)
  target = jax.eval_shape(bonus.init, jax.random.PRNGKey(0)).target
  # Convolutions 8×8 by 4, 4×4 by 2 and 3×3 by 1 leave 22×16 positions.
  weights = 8 * 8 * 3 * 32 + 4 * 4 * 32 * 64 + 3 * 3 * 64 * 64 + 22 * 16 * 64 * 128
  biases = 32 + 64 + 64 + 128
  assert sum(x.size for x in jax.tree.leaves(target)) == weights + biases
  assert on_atari("r2d2_rnd").bonus.torso == "auto"


@pytest.mark.parametrize("name", presets.PRESETS)
def test_sequence_agents_explore_with_r2d2s_epsilon(name):
  """0.4 on games; 0.1, ours, on small problems."""
  preset = presets.PRESETS[name]
  if isinstance(preset.config, r2d2_config.R2D2Config):
    assert preset.config.exploration.epsilon == 0.1
    games = preset.on["atari:"].exploration.epsilon
    assert games == 0.4 or isinstance(games, exploration.Alternating)


def _evaluation_epsilons() -> dict[tuple[str, str], float]:
  """(preset, prefix of environments, '' for small problems) → ε in evaluation."""
  found = {}
  for name, preset in presets.PRESETS.items():
    for prefix, own in {"": preset.config, **preset.on}.items():
      rule = getattr(own, "evaluation", None)
      epsilon = own.evaluation_epsilon if rule is None else rule.epsilon
      if prefix == "gym:":
        assert epsilon == found[name, ""]
        continue
      found[name, prefix] = epsilon
  return found


def test_the_documentation_has_every_presets_epsilon_in_evaluation():
  page = pathlib.Path(__file__).parents[2] / "docs/papers/README.md"
  _, _, section = page.read_text(encoding="utf-8").partition("## ε in evaluation")
  rows = [line.strip("| ").split(" | ") for line in section.splitlines() if "|" in line]
  left, others = _evaluation_epsilons(), {}
  for epsilon, where, names, source in rows[2:]:
    prefix = where.strip("`") if where != "small problems" else ""
    assert source
    if names == "all others":
      others[prefix] = float(epsilon)
    for name in re.findall(r"`(\w+)`", names):
      assert left.pop((name, prefix)) == float(epsilon), (name, prefix)
  assert left and left == {key: others[key[1]] for key in left}
