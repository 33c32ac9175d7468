"""The command `explorax`, also `python -m explorax`: one name for all commands.

`explorax run --agent=...` is `python -m explorax.experiments.run --agent=...`. The
module of a command is imported when the command is called, so that help is fast.
"""

import importlib
import sys
import time
from collections.abc import Sequence

import explorax
from explorax import notation
from explorax.experiments import command
from explorax.experiments.recording import console

# Command → (its module, what it does).
_COMMANDS = {
  "run": ("explorax.experiments.run", "trains an agent in an environment"),
  "sweep": ("explorax.experiments.sweep", "trains agents in environments, many seeds"),
  "report": ("explorax.experiments.report", "makes a page of the results of runs"),
  "evaluate": ("explorax.experiments.evaluate", "plays a trained agent"),
  "reproduce": ("explorax.papers.reproduce", "computes the figures of the papers"),
}
_DEMO_RUN = ("--agent=tdu", "--env=bsuite:deep_sea/0", "--seed=0", "--episodes=200")


def main(argv: Sequence[str] | None = None) -> int:
  """Runs `explorax COMMAND [flags]` and returns the exit code."""
  name, *rest = list(sys.argv[1:] if argv is None else argv) or ["--help"]
  if name in ("-h", "--help", "help"):
    return command.show(_help())
  if name == "--version":
    return command.show(f"explorax {explorax.__version__}")
  if name == "demo":
    # A later flag wins: `explorax demo --output=DIR`.
    output = f"--output=results/demo-{time.strftime('%Y%m%d-%H%M%S')}"
    name, rest = "run", [*_DEMO_RUN, output, *rest]
  if name not in _COMMANDS:
    near = notation.nearest(name, [*_COMMANDS, "demo"])
    console.print_error(f"there is no command {name!r}.{near} (--help lists them.)")
    return 2
  return importlib.import_module(_COMMANDS[name][0]).main(rest)


def leave() -> None:
  """The console script: `main`, and the end of the process."""
  sys.exit(main())


def _help() -> str:
  texts = {"demo": "shows TDU learning Deep Sea, with no flags, in about a minute"}
  texts |= {name: text for name, (_, text) in _COMMANDS.items()}
  commands = "\n".join(f"  explorax {name:10} {x}" for name, x in texts.items())
  return (
    f"Exploration agents for reinforcement learning.\n\n{commands}\n\n"
    "`explorax COMMAND --help` lists the flags of a command."
  )


if __name__ == "__main__":
  leave()
