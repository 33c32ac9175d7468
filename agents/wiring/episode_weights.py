"""The weights that actors use, of which a part may be fixed during an episode."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from explorax.agents import types, updates


class EpisodeWeights:
  """Pure functions of the weights in use, for one actor or for E actors.

  Without `Agent.refresh`, actors use the newest fetched weights. With it, an episode
  begins with the newest weights, and `refresh` says what a later fetch changes; the
  weights of E actors then differ and have a leading axis, `[E, ...]`.

  Attributes:
    axis: of the actors in the weights in use, as for `vmap`: 0, or None for no axis.
  """

  def __init__(self, agent: types.Agent, num_actors: int | None = None):
    """Prepares the functions.

    Args:
      agent: whose weights they are.
      num_actors: E; None: a single actor, whose weights have no axis. `begin` is then
        for the host and copies nothing.
    """
    self._refresh = agent.refresh
    self._num_actors = num_actors
    self.axis = None if num_actors is None or agent.refresh is None else 0

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
    if self.axis is None:
      return self._refresh(used, newest)
    return jax.vmap(self._refresh, (0, None))(used, newest)

  def begin(
    self, used: types.Params, newest: types.Params, begins: Any
  ) -> types.Params:
    """The weights in use, where `newest` replaces them as an episode begins.

    Args:
      used: the weights so far.
      newest: without an axis of actors.
      begins: bool, `[E]`, or of the single actor.
    """
    if self._refresh is None:
      return used
    if self.axis is None:
      return newest if begins else used
    return jax.vmap(updates.select_tree, (0, None, 0))(begins, newest, used)
