"""Every preset has the settings of its paper."""

import dataclasses
import itertools
import re
from collections.abc import Iterator
from typing import Any

import dm_env
import jax
import numpy as np
import pytest

from explorax.environments import atari_profiles
from explorax.experiments import presets
from explorax.experiments import settings as settings_lib

pytestmark = pytest.mark.core

NAMES = list(presets.PRESETS)
SMALL, ATARI = "bsuite:deep_sea/0", "atari:Pong"
ENVS = {
  "small": SMALL,
  "atari": ATARI,
  "gym": "gym:CartPole-v1",
  "maze": "jax:disco_maze/21",
}


def config(name: str, env: str = SMALL) -> Any:
  return presets.PRESETS[name].config_for(env)


def entries(table: str) -> Iterator[list[str]]:
  """The words of each preset in each environment; indented lines continue another."""
  for line in re.sub(r"\n +", " ", table).splitlines():
    if line and not line.startswith("#"):
      names, envs, *words = line.split()
      for name, env in itertools.product(names.split(","), envs.split(",")):
        yield [name, ENVS[env], *words]


# The preset, environments, the preset from which it differs, and the changes.
VARIANTS = """
tdu_bandit small,atari tdu exploration=Ucb1(8)
qu small,atari tdu bonus=QUncertainty
q_ucb small,atari,gym bootstrapped_dqn exploration=Ucb(1,ddof=1,of=Thompson())
# β = 0 of paper 4's agents, with as many members as they have.
bootstrapped_dqn small,atari,gym tdu beta=0 bonus=none num_explorers=0 num_members=20
bootstrapped_r2d2_peng small,atari,gym tdu_r2d2 beta=0 bonus=none num_explorers=0
  num_members=10
bootstrapped_dqn_no_prior small,atari,gym ucb exploration=Thompson prior_scale=0
tdu_r2d2_l small,atari tdu_r2d2 beta=0.1
tdu_r2d2_no_prior_l small,atari tdu_r2d2_no_prior beta=0.1
dqn_ez small dqn exploration=EzGreedy(0.05)
dqn atari double_dqn target=QLearning
noisy_dqn atari dqn noisy_sigma=0.5 noisy_torso=true exploration=Greedy
# enn_acme's experiments/bsuite/run.py.
epinet atari dqn index_dim=2 num_members=20 prior_scale=1 max_abs_reward=1
  exploration=Thompson
dqn_counts small dqn_rnd bonus=Counts
ucb_infogain small,atari,gym ucb bonus=InfoGain(1) beta=1
ensemble_voting small,atari ucb exploration=MajorityVote prior_scale=0
rainbow_epsilon small rainbow exploration=EpsilonGreedy(0.05)
rainbow_ez small rainbow exploration=EzGreedy(0.05,duration=ZetaDuration(2,100))
rainbow_cts atari rainbow_epsilon noisy_sigma=0 n_step=5 target_update_period=1
  bonus=PseudoCounts beta=0.0005
rainbow small double_dqn head_size=50 hidden_sizes=50 duelling=true noisy_sigma=0.5
  n_step=3 priority_exponent=0.5 importance_exponent=0.4
  target=CategoricalDoubleQ(51,10) exploration=Greedy
tree_backup_dqn small,atari retrace_dqn target=TreeBackup(1,epsilon=none)
harutyunyan_dqn small,atari retrace_dqn target=Harutyunyan(0.5,epsilon=none)
"""


@pytest.mark.parametrize("entry", [*entries(VARIANTS)], ids=lambda x: "-".join(x[:2]))
def test_a_variant_differs_as_its_paper_says(entry):
  name, env, base, *changes = entry
  assert config(name, env) == settings_lib.apply(config(base, env), changes)


@pytest.mark.parametrize("name", ["tdu", "tdu_bandit", "qu", "q_ucb", "qex"])
def test_paper_4s_ensembles_are_heads_on_atari_and_explore_as_elsewhere(name):
  fields = ("num_members", "num_explorers", "explorers_see_reward", "prior_scale")
  fields = (*fields, "bonus", "beta", "exploration")
  heads = {field: getattr(config(name), field) for field in fields}
  assert config(name, ATARI) == dataclasses.replace(config("ucb", ATARI), **heads)


# Settings as printed, in actions (four frames) and updates (one for four actions).
# Table 1, whose learning rate decreases from action 10⁶ to action 5 · 10⁶; the first
# update is at action 50,000.
PAPER_3 = (
  "batch_size=32 replay_capacity=1e6 target_update_period=10000 discount=0.99 "
  "updates_per_step=0.25 adam_b2=0.99 min_replay_size=50000 random_steps=50000 "
  "target=DoubleQ max_abs_td=1 learning_rate=Linear(1e-4,5e-5,steps=1e6,begin=237500)"
)
HEADS = "num_members=10 shared_torso=true head_size=512 sum_over_members=true"
# Appendix F: sixteen threads together, whose rates are 0 after 3 · 10⁸ frames.
PAPER_5 = (
  "optimizer=rmsprop replay_capacity=1e6 max_abs_reward=1 max_abs_td=1 "
  "exploration=EpsilonGreedy(Alternating(1,(0.5,0.1,0.01),(0.3,0.4,0.3),1e6,2e5))"
)
RETRACE = (
  f"{PAPER_5} learning_rate=Linear(9.12e-5,0,4687500) optimizer_eps=3.68e-5 "
  "batch_size=4 sequence_length=16 loss_mean_over=time"
)
# bsuite's baselines, `baselines/jax/{dqn,boot_dqn}/agent.py`; paper 4's appendix D.2
# has another prior scale.
BSUITE = (
  "discount=0.99 replay_capacity=10000 target_update_period=4 updates_per_step=1 "
  "learning_rate=1e-3 "
)
BOOTSTRAPPED = f"{BSUITE} batch_size=128 min_replay_size=128 hidden_sizes=50,50"
PUBLISHED = f"""
dqn small {BSUITE} batch_size=32 min_replay_size=100 hidden_sizes=64,64
  exploration=EpsilonGreedy(0.05)
bootstrapped_dqn small {BOOTSTRAPPED} num_members=20 mask_prob=1 prior_scale=3
tdu,qu,double_dqn,dqn_rnd,noisy_dqn small {BOOTSTRAPPED}
double_dqn atari {PAPER_3}
double_dqn atari exploration=EpsilonGreedy(Piecewise((1,0.1,0.01),(1e6,5e6)))
bootstrapped_dqn_no_prior,ensemble_voting,ucb,ucb_infogain atari {PAPER_3} {HEADS}
# Ours; the paper has Atari only.
ucb small num_members=10 shared_torso=true prior_scale=3 exploration=Ucb(10)
tdu small num_members=10 num_explorers=10 prior_scale=3 bonus=TDUncertainty beta=1
  exploration=Thompson
tdu_r2d2 atari num_explorers=2 prior_scale=0.1 bonus=TDUncertainty beta=1
epinet small index_dim=2 num_members=20 prior_scale=1 max_abs_reward=1
  epinet_hidden_sizes=50
qex small num_explorers=1 explorers_see_reward=false beta=1 bonus=AbsoluteTDError
dqn_rnd small bonus=RND() beta=0.1
# Frames: 80,000 before learning, 32,000 between targets, 200 million in all.
rainbow atari replay_capacity=1e6 min_replay_size=20000 learning_rate=0.0000625
  noisy_sigma=0.5 target_update_period=2000 priority_exponent=0.5 n_step=3 discount=0.99
  importance_exponent=Linear(0.4,1,steps=12495000) batch_size=32 max_abs_reward=1
  duelling=true target=CategoricalDoubleQ(51,10) exploration=Greedy
# Over four million frames.
rainbow_epsilon atari exploration=EpsilonGreedy(Linear(1,0.01,steps=1e6))
# The published code of Successor Uncertainties on Deep Sea.
successor_uncertainties small feature_size=20 prior_variance=1 likelihood_variance=0.01
  hidden_sizes=20 psi_hidden_sizes=()
retrace_dqn atari {RETRACE} target=Retrace(1,epsilon=none)
one_step_dqn atari {PAPER_5} learning_rate=Linear(4.39e-5,0,4687500) optimizer_eps=1e-3
  batch_size=64 sequence_length=1 loss_mean_over=nothing target=QLearning()
# Table 6.
ngu atari num_policies=32 beta=0.3 cross_mixture_ratio=0 discount=0.997
  min_discount=0.99 learning_rate=1e-4 optimizer_eps=1e-4 max_gradient_norm=40
  sequence_length=80 sequence_period=40 burn_in=0 batch_size=64 priority_exponent=0.9
  priority_eta=0.9 target=Retrace(0.95,0.01) transform_eps=1e-3 evaluation_epsilon=0.01
  replay_capacity=5e6 min_replay_size=250000 actor_update_period=100
  target_update_period=1500 bonus.memory_capacity=30000 bonus.num_neighbors=10
  bonus.kernel_epsilon=1e-4 bonus.cluster_distance=8e-3 bonus.pseudo_count=1e-3
  bonus.max_similarity=8 bonus.embedding_learning_rate=5e-4 bonus.rnd_learning_rate=5e-4
  bonus.embedding_l2=1e-5 bonus.max_modulation=5 bonus.optimizer_eps=1e-4
  bonus.max_gradient_norm=40
r2d2_rnd atari bonus.optimizer_eps=1e-4 bonus.max_gradient_norm=40
  bonus.learning_rate=5e-4 bonus.num_trained=5 bonus.torso=auto
# Table 7.
ngu maze num_policies=1 beta=0.5 target.lambda_=0.97 sequence_length=50
  sequence_period=50 transform_eps=none target_update_period=100 learning_rate=1e-3
  bonus.memory_capacity=5000 bonus.kernel_epsilon=0.01
  bonus.embedding_learning_rate=1e-3 bonus.rnd_learning_rate=5e-4
r2d2_rnd maze learning_rate=1e-3 bonus.learning_rate=5e-4
# The authors' repositories.
dqn_icm atari beta=0.01 bonus.model.inverse_weight=0.8 bonus.model.forward_weight=0.2
  bonus.model.learning_rate=1e-3 bonus.model.embedding_size=288
dqn_ride atari beta=0.1 bonus.model.inverse_weight=0.1 bonus.model.forward_weight=10
  bonus.model.learning_rate=1e-4 bonus.model.embedding_size=128
  bonus.model.forward_error=distance
dqn_novel_d atari beta=0.05 bonus.alpha=0.5 bonus.learning_rate=1e-4
dqn_e3b atari beta=1 bonus.ridge=0.1 bonus.model.embedding_size=1024
  bonus.model.learning_rate=1e-4 bonus.model.forward_weight=0
dqn_disagreement atari beta=1 bonus.num_models=5 bonus.keep_prob=0.8
  bonus.learning_rate=1e-4
dqn_re3 atari beta=0.005 bonus.num_neighbors=3 bonus.memory_capacity=10000
  bonus.embedding_size=64
dqn_simhash atari bonus.num_bits=128
# Novelty is over its deviation since the start, whatever its scale.
r2d2_rnd,r2d2_sarsa_lambda_rnd small,atari bonus.normalisation=deviation
  bonus.decay=none
"""


@pytest.mark.parametrize("entry", [*entries(PUBLISHED)], ids=lambda x: "-".join(x[:2]))
def test_settings_are_the_published_ones(entry):
  name, env, *settings = entry
  for assignment in settings:
    assert settings_lib.apply(config(name, env), [assignment]) == config(name, env)


def test_paper_1s_rnd_has_the_network_of_dqn():
  """Appendix C, on 210×160 RGB, where the agent's own convolutions are others."""
  frames = dm_env.specs.Array((210, 160, 3), np.uint8)
  bonus = config("r2d2_sarsa_lambda_rnd", ATARI).bonus.build(frames, 18)
  target = jax.eval_shape(bonus.learning.init, jax.random.PRNGKey(0)).target
  # Convolutions 8×8 by 4, 4×4 by 2 and 3×3 by 1 leave 22×16 positions.
  weights = 8 * 8 * 3 * 32 + 4 * 4 * 32 * 64 + 3 * 3 * 64 * 64 + 22 * 16 * 64 * 128
  biases = 32 + 64 + 64 + 128
  assert sum(x.size for x in jax.tree.leaves(target)) == weights + biases


@pytest.mark.parametrize("name", NAMES)
def test_settings_depend_on_the_kind_of_environment(name):
  preset = presets.PRESETS[name]
  assert config(name, "jax:catch") is preset.config
  assert config(name, "jax:cartpole_swingup") is preset.config
  for env in ("my_module:make", "gymnax:CartPole-v1", "jax:cartpole,time_limit=200"):
    assert config(name, env) is config(name, "gym:CartPole-v1")
  if name == "successor_uncertainties":
    return
  there, small = config(name, "gym:CartPole-v1"), preset.config
  assert there != small and config(name, ATARI) != small
  assert there.min_replay_size == 1_000 and there.max_abs_reward is None
  assert there.learning_rate(0) > 4 * there.learning_rate(50_000)
  # How returns are cut, and over which values atoms are spread, may differ.
  assert type(there.target) is type(small.target)
  rule, expected = there.exploration, small.exploration
  if hasattr(rule, "epsilon"):
    assert rule.epsilon(0) == 1.0 and rule.epsilon(8_000) == pytest.approx(0.04)
    expected = dataclasses.replace(expected, epsilon=rule.epsilon)
  assert rule == expected
  kept = ("discount", "num_members", "num_explorers", "bonus", "beta", "prior_scale")
  kept = (*kept, "head_size", "mask_prob", "priority_exponent")
  assert all(getattr(there, field) == getattr(small, field) for field in kept)


@pytest.mark.parametrize(
  ("name", "profile"),
  [
    ("dqn", "dqn"),
    ("rainbow_cts", "dqn,life_loss=true"),
    ("r2d2", "ngu"),
    ("bootstrapped_r2d2", "rgb"),
    ("retrace_dqn", "dqn,life_loss=true"),
  ],
)
def test_each_sees_atari_as_its_paper_does(name, profile):
  preset = presets.PRESETS[name]
  assert preset.environment_for("atari:Pong") == f"atari:Pong/{profile}"
  for env in ("atari:Pong/rgb", "atari:Pong/dqn,sticky=0.25", "bsuite:deep_sea/0"):
    assert preset.environment_for(env) == env


@pytest.mark.parametrize("name", ["dqn", "rainbow", "ngu"])
def test_a_setting_of_an_atari_game_changes_that_alone(name):
  """Of the profile that the agent has without it."""

  def profile(settings: str = "") -> atari_profiles.Profile:
    env = presets.PRESETS[name].environment_for(f"atari:Pong{settings}")
    return atari_profiles.parse(env.removeprefix("atari:"))[1]

  for life_loss in (False, True):
    expected = dataclasses.replace(profile(), life_loss=life_loss, noops=0)
    assert profile(f"/noops=0,life_loss={life_loss}") == expected
