"""bsuite's experiments: their order, ids, tags, and the settings to group them by."""

from explorax.environments import bsuite_sweeps

_VARIANTS = ("_noise", "_scale")

# The settings that bsuite's scores and plots depend on, by the number after the slash.
_SPACED = (*range(1, 11), 12, 14, 17, 20, 25)
_HUNDRED = (*_SPACED, *range(30, 105, 10))
_NOISES, _SCALES = (0.1, 0.3, 1.0, 3.0, 10.0), (0.001, 0.03, 1.0, 30.0, 1000.0)
_OF_VARIANTS = {
  "_noise": ("noise_scale", tuple(x for x in _NOISES for _ in range(4))),
  "_scale": ("reward_scale", tuple(x for x in _SCALES for _ in range(4))),
}
_SETTINGS: dict[str, tuple[str, tuple[float, ...]]] = {
  "cartpole_swingup": ("height_threshold", tuple(n / 20 for n in range(20))),
  "deep_sea": ("size", tuple(range(10, 51, 2))),
  "deep_sea_stochastic": ("size", tuple(range(10, 51, 2))),
  "memory_len": ("memory_length", _HUNDRED),
  "memory_size": ("num_bits", (*_SPACED, 30, 40)),
  "umbrella_distract": ("n_distractor", _HUNDRED),
  "umbrella_length": ("chain_length", _HUNDRED),
}

# bsuite's order of experiments (`summary_analysis._ORDERED_EXPERIMENTS`).
_BASICS = ("bandit", "mnist", "catch", "mountain_car", "cartpole")
EXPERIMENTS = (
  *_BASICS,
  *(f"{name}_noise" for name in _BASICS),
  *(f"{name}_scale" for name in _BASICS),
  *("deep_sea", "deep_sea_stochastic", "cartpole_swingup"),
  *("umbrella_length", "umbrella_distract", "discounting_chain"),
  *("memory_len", "memory_size"),
)
# The tags, in its order of types (`_ORDERED_TYPES`), and the one that is no type.
TAGS = (
  *("basic", "noise", "scale", "exploration", "credit_assignment", "memory"),
  "generalization",
)


def kind(experiment: str) -> str:
  """`catch` for `catch_noise` and `catch_scale`."""
  return next(
    (experiment.removesuffix(v) for v in _VARIANTS if experiment.endswith(v)),
    experiment,
  )


def tags(experiment: str) -> tuple[str, ...]:
  """bsuite's tags of an experiment, in the order of `TAGS`."""
  groups = bsuite_sweeps.groups()
  first = ids(experiment)[0]
  return tuple(tag for tag in TAGS if first in groups[tag])


def ids(experiment: str) -> tuple[str, ...]:
  """All of bsuite's ids of an experiment."""
  return bsuite_sweeps.groups()[experiment.upper()]


def setting(bsuite_id: str) -> float | None:
  """The setting by which bsuite groups the id (a size, a scale), or None."""
  found = _setting_table(bsuite_sweeps.experiment(bsuite_id))
  return None if found is None else found[1][int(bsuite_id.partition("/")[2])]


def setting_name(experiment: str) -> str | None:
  """The name of `setting`: `size`, `noise_scale`; None if there is none."""
  found = _setting_table(experiment)
  return None if found is None else found[0]


def _setting_table(experiment: str) -> tuple[str, tuple[float, ...]] | None:
  for variant in _VARIANTS:
    if experiment.endswith(variant):
      return _OF_VARIANTS[variant]
  return _SETTINGS.get(experiment)
