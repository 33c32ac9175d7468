"""Which folder may import which others, and that importing does no work."""

import ast
import importlib.util
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
LEAVES = {"notation", "ranges"}  # Every folder may import them.
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


def _python(code: str) -> None:
  command = [sys.executable, "-P", "-c", code]
  done = subprocess.run(command, capture_output=True, text=True, check=False)
  assert done.returncode == 0, done.stderr
  assert done.stdout == ""


def test_importing_the_package_alone_is_light():
  """Its parts are there all the same, and no others."""
  _python(f"""
import sys
before = set(sys.modules)
import explorax
loaded = {{name.split(".")[0] for name in set(sys.modules) - before}}
assert loaded <= {{"explorax", *sys.stdlib_module_names}}, loaded
assert set({sorted(MAY_IMPORT)!r}) <= set(dir(explorax))
assert explorax.losses.retrace is sys.modules["explorax.losses"].retrace
assert not hasattr(explorax, "no_such_part")
loaded = {{name.split(".")[0] for name in set(sys.modules) - before}}
assert not loaded & {{"haiku", "optax", "acme", "dm_env"}}, loaded
""")


def test_a_run_needs_no_optional_package_and_its_imports_compute_nothing():
  _python("""
import sys, threading
import explorax.experiments.session
import jax
assert not jax._src.xla_bridge.backends_are_initialized(), "something computes"
assert threading.active_count() == 1, threading.enumerate()
loaded = {"bsuite", "minigrid", "gymnax", "ray", "matplotlib", "PIL"} & set(sys.modules)
assert not loaded, loaded
""")


def test_explorax_is_installed_from_here():
  spec = importlib.util.find_spec("explorax")
  assert spec is not None and ROOT in pathlib.Path(spec.origin or "").parents
