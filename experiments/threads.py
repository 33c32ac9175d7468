"""How many threads a process uses to compute on the CPU."""

import os

import jax

# Environment of a process that uses one thread from its start; see `use_one_thread`.
ONE_THREAD = {"PJRT_NPROC": "1"}


def use_one_thread() -> None:
  """Makes jax compute with one thread; call it before jax computes anything.

  Several processes, one for each core, are faster this way: if XLA splits a loop of
  small computations over two threads, it waits for both of them in each one.

  XLA's flags (`--xla_cpu_multi_thread_eigen`, `intra_op_parallelism_threads`) have no
  effect on this; the environment variable for the size of its thread pool has.
  """
  os.environ.update(ONE_THREAD)
  # Compute in the calling thread: dispatching to another thread takes longer than a
  # small network does. This flag has no environment variable.
  jax.config.update("jax_cpu_enable_async_dispatch", False)
