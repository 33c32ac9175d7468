"""The command line of the distributed runner: what is refused, with what sentence."""

import pytest

from explorax.agents import types
from explorax.environments import metrics, standard, testing
from explorax.experiments import config, errors
from explorax.experiments.distributed import failures, layout

ASKED = ("--agent=dqn", "--env=bsuite:catch/0")
SPEC = types.ReplaySpec(capacity=100, min_size=10, batch_size=4, updates_per_step=0.25)


def test_flags_of_the_distributed_runner():
  asked = config.parse([*ASKED, "--runner=distributed", "--variable_update_period=7"])
  assert (asked.num_actors, asked.replay_shards, asked.variable_update_period) == (
    4,
    1,
    7,
  )
  assert (asked.error_buffer, asked.learner_gpus, asked.ray_address) == (
    None,
    0,
    None,
  )
  assert config.parse(ASKED).num_actors is None


@pytest.mark.parametrize(
  "flags, sentence",
  [
    (["--num_actors=2"], "--num_actors=2 is for --runner=distributed"),
    (["--ray_address=auto"], "--ray_address=auto is for --runner=distributed"),
    (
      ["--runner=distributed", "--num_actors=0"],
      "--num_actors=0: it is 0; it must be at least 1",
    ),
    (
      ["--runner=distributed", "--num_envs=0"],
      "--num_envs=0: it is 0; it must be at least 1",
    ),
    (
      ["--runner=distributed", "--seeds=2"],
      "--seeds=2 is for --runner=device, and --runner=distributed",
    ),
  ],
)
def test_what_does_not_go_together_is_refused(flags, sentence):
  with pytest.raises(errors.SetUpError, match=sentence):
    config.parse([*ASKED, *flags])


def test_layouts_that_cannot_work_are_refused():
  with pytest.raises(ValueError, match="3 shards of replay for 2 actors"):
    layout.Layout(num_actors=2, num_shards=3)
  with pytest.raises(ValueError, match="wait for each other for ever; use at least 3"):
    layout.Layout(error_buffer=2).limits(SPEC, 1, None)


@pytest.mark.parametrize("period, pull_every", [(1, 10), (400, 400)])
def test_what_a_layout_leaves_to_the_agent(period, pull_every):
  limits = layout.Layout(num_actors=3).limits(SPEC, period, 50)
  assert limits.pull_every == limits.grant == pull_every
  assert limits.tolerance == 2 * 3 * pull_every and limits.num_steps == 50


def test_which_environments_count_over_episodes():
  from explorax.environments import factory

  assert metrics.counts_over_episodes(factory.make("bsuite:catch/0", seed=0))
  assert not metrics.counts_over_episodes(factory.make("jax:deep_sea/4", seed=0))
  fake = standard.StandardEnvironment(testing.FakeEnvironment())
  assert not metrics.counts_over_episodes(fake)


DEATH = "The actor died unexpectedly.\n\tclass_name: {}\n\tpid: 7\nSome causes: (1) ..."


@pytest.mark.parametrize(
  "process, asked, begins",
  [
    ("ActorProcess", False, "the process of actor 0 died unexpectedly"),
    ("MemoryServer", True, "the process of replay, of which actor 0 asked"),
    ("Collector", True, "the process of the collector, of which actor 0 asked"),
  ],
)
def test_a_death_is_told_in_a_sentence(process, asked, begins):
  text = failures.death("actor 0", DEATH.format(process), asked)
  assert text.startswith(begins) and text.endswith("or crashed.")
  assert "\n" not in text and text.count(".") == 1
