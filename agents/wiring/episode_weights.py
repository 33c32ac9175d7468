"""The weights that actors use, of which a part may be fixed during an episode."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from explorax.agents import types, updates


class EpisodeWeights:
  """Pure functions of the weights in use, for E actors.

  Without `Agent.refresh`, actors use the newest fetched weights. With it, an episode
  begins with the newest weights, and `refresh` says what a later fetch changes; the
  weights of the actors then differ and have a leading axis, `[E, ...]`.

  Attributes:
    axis: of the actors in the weights in use, as for `vmap`: 0, or None for no axis.
  """

  def __init__(self, agent: types.Agent, num_actors: int):
    """Prepares the functions for `num_actors` (E) actors."""
    self._refresh = agent.refresh
    self._num_actors = num_actors
    self.axis = None if agent.refresh is None else 0

  def init(self, newest: types.Params) -> types.Params:
    """The weights in use before the first episode."""
    if self.axis is None:
      return newest
    return jax.tree.map(
      lambda x: jnp.broadcast_to(x, (self._num_actors, *np.shape(x))), newest
    )

  def fetch(self, used: types.Params, newest: types.Params) -> types.Params:
    """The weights for the rest of each episode, after a fetch of `newest`."""
    if self._refresh is None:
      return newest
    return jax.vmap(self._refresh, (0, None))(used, newest)

  def begin(
    self, used: types.Params, newest: types.Params, begins: Any
  ) -> types.Params:
    """The weights in use; the newest ones where an episode begins, bool `[E]`."""
    if self._refresh is None:
      return used
    return jax.vmap(updates.select_tree, (0, None, 0))(begins, newest, used)
