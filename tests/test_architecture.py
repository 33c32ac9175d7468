"""Which folder may import which others, and that importing does no work."""

import ast
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
# Folder → the others of ours that it may import: always in one direction.
MAY_IMPORT = {
  "losses": set(),
  "exploration": {"losses"},  # Its checks of arguments.
  "networks": set(),
  "environments": set(),
  "agents": {"losses", "exploration", "networks", "environments"},
  "experiments": {"losses", "exploration", "networks", "environments", "agents"},
  "papers": {"losses", "exploration", "environments", "agents", "experiments"},
}
LEAVES = {"accelerators", "notation", "ranges"}  # Every folder may import them.
# Library → the only folders and files that may import it.
ONLY_IN = {
  "acme": ("agents/replay", "agents/wiring"),
  "reverb": ("agents/replay",),
  "tensorflow": ("agents/replay",),
  "bsuite": ("environments",),
  "gymnasium": ("environments", "agents/bonuses"),
  "ale_py": ("environments",),
  "matplotlib": ("experiments", "papers"),
  "absl": ("experiments/flags.py",),
  "stable_baselines3": ("agents/bonuses/wrappers",),
  "ray": ("experiments/processes.py", "experiments/pool.py", "experiments/runners"),
}
LOSSES_NEED = {"explorax", "jax", "chex", "numpy", *sys.stdlib_module_names}


def _imports() -> list[tuple[str, str]]:
  """(file, dotted name) of all imports of our folders; relative ones keep dots."""
  found = []
  for path in (x for folder in MAY_IMPORT for x in (ROOT / folder).rglob("*.py")):
    file = path.relative_to(ROOT).as_posix()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
      if isinstance(node, ast.Import):
        found += [(file, alias.name) for alias in node.names]
      elif isinstance(node, ast.ImportFrom):
        module = "." * node.level + (node.module or "")
        found += [(file, f"{module}.{alias.name}") for alias in node.names]
  return found


def _is_allowed(file: str, name: str) -> bool:
  folder, (top, *rest) = file.split("/")[0], name.split(".")
  if top in ("", *MAY_IMPORT):  # Relative, or from the repository's root.
    return False
  if top == "explorax":
    return not rest or rest[0] in {folder, *LEAVES, *MAY_IMPORT[folder]}
  is_at_home = any(f"{file}/".startswith(f"{home}/") for home in ONLY_IN.get(top, ()))
  is_light = folder != "losses" or top in LOSSES_NEED
  return is_light and (top not in ONLY_IN or is_at_home)


def test_imports_point_one_way():
  wrong = [x for x in _imports() if not _is_allowed(*x)]
  assert not wrong, "papers → experiments → agents → the others"


def test_importing_is_light_and_computes_nothing():
  """The package alone needs no library; a run no optional one."""
  code = f"""
import sys, threading

def loaded(names):
  return {{name.split(".")[0] for name in sys.modules}} & set(names)

before = set(sys.modules)
import explorax
new = {{name.split(".")[0] for name in set(sys.modules) - before}}
assert new <= {{"explorax", *sys.stdlib_module_names}}, new
assert set({sorted(MAY_IMPORT)!r}) <= set(dir(explorax))
assert explorax.losses.retrace is sys.modules["explorax.losses"].retrace
assert not loaded(["haiku", "optax", "acme", "dm_env"])
import explorax.experiments.session
import jax
assert not jax._src.xla_bridge.backends_are_initialized(), "something computes"
assert threading.active_count() == 1, threading.enumerate()
assert not loaded(["bsuite", "minigrid", "gymnax", "ray", "matplotlib", "PIL"])
"""
  command = [sys.executable, "-P", "-c", code]
  done = subprocess.run(command, capture_output=True, text=True, check=False)
  assert done.returncode == 0, done.stderr
