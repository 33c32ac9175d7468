"""bsuite's experiments: their order, ids, tags, and the settings to group them by."""

from explorax.environments import bsuite_sweeps

_VARIANTS = ("_noise", "_scale")

# The setting of each experiment that bsuite's scores and plots depend on.
_SETTINGS = {
  "cartpole_swingup": "height_threshold",
  "deep_sea": "size",
  "deep_sea_stochastic": "size",
  "memory_len": "memory_length",
  "memory_size": "num_bits",
  "umbrella_distract": "n_distractor",
  "umbrella_length": "chain_length",
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


def ids(name: str) -> tuple[str, ...]:
  """All of bsuite's ids of an experiment, or of a tag."""
  groups = bsuite_sweeps.groups()
  return groups[name] if name in TAGS else groups[name.upper()]


def setting_name(experiment: str) -> str | None:
  """The setting by which bsuite groups ids: `size`, `noise_scale`; None if none."""
  variant = next((v for v in _VARIANTS if experiment.endswith(v)), None)
  if variant is not None:
    return {"_noise": "noise_scale", "_scale": "reward_scale"}[variant]
  return _SETTINGS.get(experiment)


def setting(bsuite_id: str) -> float | None:
  """The value of that setting in an id."""
  name = setting_name(bsuite_sweeps.experiment(bsuite_id))
  return None if name is None else bsuite_sweeps.settings(bsuite_id)[name]
