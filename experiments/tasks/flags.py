"""The flags of all commands that compute tasks, and their exit codes."""

from typing import Any

from explorax.experiments import flag_table

TIME_UP = 3  # Exit code.

EXIT_CODES = (
  "Exit codes: 0 done, 1 a task failed, 2 could not start, 3 --max_hours was reached,\n"
  "130 Ctrl-C, 143 SIGTERM, 129 SIGHUP.\n"
)

FLAGS = (
  flag_table.Flag(
    "workers",
    "=INT",
    None,
    "Number of tasks at a time, on Ray. With 1, or without Ray, this process runs\n"
    "one task after another. [one per core]",
    parser=flag_table.WholeNumber(1),
  ),
  flag_table.Flag(
    "ray_address",
    "=ADDRESS",
    None,
    "Address of a Ray cluster with explorax installed on all its machines. [starts\n"
    "Ray on this machine]",
  ),
  flag_table.Flag(
    "max_hours",
    "=NUMBER",
    None,
    "Stops after this many hours. Finished tasks are kept, and the same command again\n"
    "runs the others. [no limit]",
    parser=flag_table.PositiveNumber(),
  ),
)


def pool_arguments(given: dict[str, Any]) -> dict[str, Any]:
  """The arguments of `Pool` among the values of these flags."""
  return {flag.name: given[flag.name] for flag in FLAGS}
