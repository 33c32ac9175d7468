"""The type of presets."""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

from explorax.agents import types
from explorax.environments import atari_profiles


@dataclasses.dataclass(frozen=True)
class Pair:
  """What an agent has on small problems and on Atari games: a config, or a field."""

  small: Any
  atari: Any

  def replace(self, **changes: Any) -> "Pair":
    """Changes fields of both configs; those of a pair differ."""

    def of(side: str) -> Any:
      values = {
        k: getattr(v, side) if isinstance(v, Pair) else v for k, v in changes.items()
      }
      return dataclasses.replace(getattr(self, side), **values)

    return Pair(of("small"), of("atari"))

  def map(self, change: Callable[[Any], Any]) -> "Pair":
    """Applies (config) → config to both."""
    return Pair(change(self.small), change(self.atari))


@dataclasses.dataclass(frozen=True)
class Preset:
  """A named agent.

  Attributes:
    name: the value of `--agent`.
    summary: a one-line description.
    paper: its source.
    config: its settings.
    make_agent: (config, the environment's spec) → the agent.
    on: prefix of an environment's name → the settings for it, if they differ. Those
      for `gym:` are also for `jax:cartpole` and for users' environments, gymnax's and
      other libraries'.
    atari_profile: its paper's preprocessing of Atari frames, for names without a
      profile; fields that a name sets are changed in it.
  """

  name: str
  summary: str
  paper: str
  config: Any
  make_agent: Callable[[Any, types.EnvironmentSpec], types.Agent]
  on: Mapping[str, Any] = dataclasses.field(default_factory=dict)
  atari_profile: str = "dqn"

  def environment_for(self, environment_name: str) -> str:
    """The name of an Atari game with the agent's profile, if it names no profile.

    See `atari_profiles.complete`.
    """
    kind, colon, name = environment_name.partition(":")
    if kind != "atari":
      return environment_name
    return f"{kind}{colon}{atari_profiles.complete(name, self.atari_profile)}"

  def config_for(self, environment_name: str) -> Any:
    """The settings for `kind:name`, or for a user's `module:function`."""
    kind, _, _ = environment_name.partition(":")
    # Others have episodes and returns of any size, as Gymnasium's CartPole has.
    is_known = kind in ("atari", "bsuite", "jax")
    is_cartpole = environment_name.partition(",")[0] == "jax:cartpole"
    name = environment_name if is_known and not is_cartpole else "gym:"
    for prefix, config in self.on.items():
      if name.startswith(prefix):
        return config
    return self.config
