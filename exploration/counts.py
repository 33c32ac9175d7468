"""Visit counts in a table: exact for indexed states, hashed for all others."""

from typing import NamedTuple

import chex
import jax
import jax.numpy as jnp

from explorax.losses import checks, indexing

_TABLE = {"counts": "count [S, A]", "state": "state []", "action": "int []"}


def init_counts(num_states: int, num_actions: int) -> jax.Array:
  """No visits yet: int32 `[num_states, num_actions]`.

  Raises:
    ValueError: if either number is below 1.
  """
  if num_states < 1 or num_actions < 1:
    raise ValueError(
      f"a table of {num_states} states and {num_actions} actions is empty; use at "
      "least 1 of each."
    )
  return jnp.zeros((num_states, num_actions), jnp.int32)


@checks.arguments(**_TABLE)
def count_visit(
  counts: jax.Array, state: jax.Array, action: jax.Array, amount: chex.Numeric = 1
) -> jax.Array:
  """Adds a visit to (state, action); an index that the table lacks adds none.

  Args:
    counts: from `init_counts`.
    state: int `[]`, the state's index; an index outside the table is refused unless
      it is traced.
    action: int `[]`, likewise.
    amount: int `[]`, the number of visits. 0 leaves the counts unchanged without the
      copy of the table that `jnp.where` would make.

  Returns:
    The counts.
  """
  # JAX ignores indices beyond the end, but reads -1 as the last one.
  amount = jnp.where((state >= 0) & (action >= 0), amount, 0)
  return counts.at[state, action].add(amount.astype(counts.dtype))


@checks.arguments(**_TABLE)
def count_bonus(
  counts: jax.Array, state: jax.Array, action: jax.Array, pseudo_count: float = 0.01
) -> jax.Array:
  """`(N(s, a) + pseudo_count)^{-1/2}`, float32 `[]`.

  The bonus of "Temporal Difference Uncertainties" (Flennerhag et al., 2020), appendix
  D.1, called CTS there, with the constant 0.01; this one has the counts of a table in
  place of a density model. `counts` may include the current visit or not.

  Args:
    counts: from `init_counts`.
    state: int `[]`, the state's index; an index outside the table is refused, and
      gives NaN if it is traced.
    action: int `[]`, likewise.
    pseudo_count: at least 0; sets the bonus of a first visit.
  """
  checks.check_in_range("count_bonus", "pseudo_count", pseudo_count, 0)
  visits = indexing.index(indexing.index(counts, state), action)
  return jax.lax.rsqrt(visits.astype(jnp.float32) + pseudo_count)


class EpisodicCounts(NamedTuple):
  """Visits in this episode. A count of an earlier episode is stale, and means 0.

  Attributes:
    counts: int32 `[S]`.
    episodes: int32 `[S]`, the episode in which each count was last written.
    episode: int32 `[]`, the number of this one.
  """

  counts: jax.Array
  episodes: jax.Array
  episode: jax.Array


def init_episodic_counts(num_states: int) -> EpisodicCounts:
  """No visits yet.

  Raises:
    ValueError: if `num_states` is below 1.
  """
  counts = init_counts(num_states, 1)[:, 0]
  return EpisodicCounts(counts, jnp.zeros_like(counts), jnp.zeros((), jnp.int32))


def clear_episodic_counts(counts: EpisodicCounts) -> EpisodicCounts:
  """The counts at an episode's start; the tables are not touched."""
  return counts._replace(episode=counts.episode + 1)


def count_episodic_visit(
  counts: EpisodicCounts, state: jax.Array
) -> tuple[jax.Array, EpisodicCounts]:
  """Counts a visit in this episode.

  Args:
    counts: from `init_episodic_counts`.
    state: int `[]`, in [0, S).

  Returns:
    N(s), this visit included, int32 `[]`, and the counts.
  """
  is_current = counts.episodes[state] == counts.episode
  visits = jnp.where(is_current, counts.counts[state], 0) + 1
  return visits, counts._replace(
    counts=counts.counts.at[state].set(visits),
    episodes=counts.episodes.at[state].set(counts.episode),
  )


def _mix(words: jax.Array) -> jax.Array:
  """MurmurHash3's finaliser: a bijection of uint32 that mixes all bits."""
  words = (words ^ (words >> 16)) * jnp.uint32(0x85EBCA6B)
  words = (words ^ (words >> 13)) * jnp.uint32(0xC2B2AE35)
  return words ^ (words >> 16)


def _words(observation: jax.Array) -> jax.Array:
  """The observation's values as uint32; equal values give equal words."""
  if jnp.issubdtype(observation.dtype, jnp.floating):
    values = observation.astype(jnp.float32)
    values = jnp.where(values == 0.0, 0.0, values)  # −0 is 0.
    return jax.lax.bitcast_convert_type(values, jnp.uint32)
  return observation.astype(jnp.uint32)


def hash_observation(observation: jax.Array, num_buckets: int) -> jax.Array:
  """The row of a table of `num_buckets` for this observation.

  Equal observations share a bucket; different ones share one with a probability of
  about 1/num_buckets. Floats are compared as float32, exactly: round them first to
  count nearby observations as one.

  Args:
    observation: an array of any shape, of floats, integers or booleans.
    num_buckets: the table's size, static.

  Returns:
    int32 `[]`, in [0, num_buckets).

  Raises:
    ValueError: if `num_buckets` is below 1.
  """
  if num_buckets < 1:
    raise ValueError(f"num_buckets is {num_buckets}; a table needs at least 1.")
  words = jnp.ravel(_words(jnp.asarray(observation)))
  places = _mix(jnp.arange(1, words.size + 1, dtype=jnp.uint32))
  # Mixed before the sum: a plain sum would not distinguish permuted values.
  digest = _mix(jnp.sum(_mix(words ^ places), dtype=jnp.uint32))
  return (digest % jnp.uint32(num_buckets)).astype(jnp.int32)
