"""The flags of all commands that compute tasks, and what their exit codes mean."""

from typing import Any

from explorax.experiments import flag_table

TIME_UP = 3  # The exit code.

EXIT_CODES = (
  "Exit codes: 0 done, 1 a task failed, 2 could not start, 3 --max_hours were up,\n"
  "130 Ctrl-C, 143 SIGTERM, 129 SIGHUP.\n"
)

FLAGS = (
  flag_table.Flag(
    "workers",
    "=INT",
    None,
    "Tasks side by side, on Ray. With 1, or without Ray, this process computes one\n"
    "after another. [one for each core]",
    parser=flag_table.WholeNumber(1),
  ),
  flag_table.Flag(
    "ray_address",
    "=ADDRESS",
    None,
    "Of a Ray cluster, all of whose machines have explorax installed. [Ray is\n"
    "started on this machine]",
  ),
  flag_table.Flag(
    "task_minutes",
    "=NUMBER",
    1440.0,
    "An attempt at a task that takes longer has failed. [1440]",
    parser=flag_table.PositiveNumber(),
  ),
  flag_table.Flag(
    "max_hours",
    "=NUMBER",
    None,
    "Stops after so long: what is done is kept, and the same command does the rest.\n"
    "[no limit]",
    parser=flag_table.PositiveNumber(),
  ),
)


def pool_arguments(given: dict[str, Any]) -> dict[str, Any]:
  """What `Pool` takes of the values of these flags."""
  return {flag.name: given[flag.name] for flag in FLAGS}
