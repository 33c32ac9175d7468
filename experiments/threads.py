"""How many threads a process computes with, on the CPU."""

import os

# Of a process with one thread, from its start on: see `use_one_thread`.
ONE_THREAD = {"PJRT_NPROC": "1"}


def use_one_thread() -> None:
  """Has jax compute with one thread; to be called before it computes.

  Processes side by side, one for each core, are faster so: a loop of small computations
  that XLA splits over two threads waits for both at every one of them.

  XLA's flags (`--xla_cpu_multi_thread_eigen`, `intra_op_parallelism_threads`) do not
  decide it; an environment variable, for the size of its pool of threads, does.
  """
  os.environ.update(ONE_THREAD)
  import jax

  # The thread that asks computes: handing over to another takes longer than a small
  # network does. No environment variable sets this flag.
  jax.config.update("jax_cpu_enable_async_dispatch", False)
