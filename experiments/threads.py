"""How many threads a process computes with."""

import os


def use_one_thread() -> None:
  """Has jax compute with one thread on the CPU; to be called before it computes.

  Processes side by side, one for each core, are faster so: a loop of small computations
  that XLA splits over two threads waits for both at every one of them.

  XLA's flags (`--xla_cpu_multi_thread_eigen`, `intra_op_parallelism_threads`) do not
  decide it; this variable, the size of its pool of threads, does.
  """
  os.environ["PJRT_NPROC"] = "1"
