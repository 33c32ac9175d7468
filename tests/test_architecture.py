"""Which folder may import which others, and that importing does no work."""

import ast
import collections
import functools
import graphlib
import importlib.util
import pathlib
import subprocess
import sys
from collections.abc import Iterator

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent

# Modules of the standard library alone, which every folder may import.
LEAVES = {"lazy", "ranges"}

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

# Within experiments, from bottom to top: each imports from its own layer or lower ones.
# All other files there (errors, output, ...) may have any place, but in no cycle.
MAINS = {
  *("run", "sweep", "report", "compare", "evaluate"),
  "api",
}
ORDER = (
  {"config", "presets", "recording", "checkpoints"},
  {"runners"},
  {"reports"},
  MAINS,
)

# Library → the only folders and files that may import it.
ONLY_IN = {
  "acme": ("agents/replay", "agents/wiring"),
  "reverb": ("agents/replay",),
  "tensorflow": ("agents/replay",),
  "bsuite": ("environments", "benchmarks"),
  "gymnasium": (
    "environments",
    "agents/bonuses",
    "benchmarks/expected_peers.py",
    "benchmarks/peers.py",
  ),
  "ale_py": ("environments",),
  "matplotlib": ("experiments", "papers"),
  "absl": ("experiments/flags.py",),
  "stable_baselines3": (
    "agents/bonuses/wrappers/sb3_wrapper.py",
    "benchmarks",
  ),
  "ray": (
    "experiments/processes.py",
    "experiments/runners/distributed.py",
    "experiments/pool.py",
  ),
}

LOSSES_NEED = {"explorax", "jax", "chex", "numpy"}


def _sources() -> list[pathlib.Path]:
  folders = (*MAY_IMPORT, "benchmarks")
  return [path for folder in folders for path in sorted((ROOT / folder).rglob("*.py"))]


def _tests() -> list[pathlib.Path]:
  return sorted((ROOT / "tests").rglob("*.py"))


def _name(path: pathlib.Path) -> str:
  return path.relative_to(ROOT).as_posix()


@functools.cache
def _imports(path: pathlib.Path) -> list[tuple[int, str]]:
  """(line, dotted name) of every import of a file, those in functions too.

  A relative import keeps its dots; `from a import b` is `a.b`.
  """
  return _imports_of(_tree(path))


def _imports_of(tree: ast.AST) -> list[tuple[int, str]]:
  imports = []
  for node in _statements(tree):
    if isinstance(node, ast.Import):
      imports += [(node.lineno, alias.name) for alias in node.names]
    elif isinstance(node, ast.ImportFrom):
      module = "." * node.level + (node.module or "")
      imports += [(node.lineno, f"{module}.{alias.name}") for alias in node.names]
  return imports


def _statements(node: ast.AST) -> Iterator[ast.AST]:
  """All statements within one; expressions, which have none, are not looked into."""
  for child in ast.iter_child_nodes(node):
    if isinstance(child, ast.stmt | ast.excepthandler | ast.match_case):
      yield child
      yield from _statements(child)


@functools.cache
def _tree(path: pathlib.Path) -> ast.Module:
  return ast.parse(path.read_text(encoding="utf-8"), str(path))


def _is_module(name: str) -> bool:
  path = ROOT.joinpath(*name.split(".")[1:])
  is_leaf = name.removeprefix("explorax.") in LEAVES
  return is_leaf or path.is_dir() or path.with_suffix(".py").is_file()


@functools.cache
def _modules() -> list[str]:
  """The dotted names of all our modules."""
  names = []
  for folder in MAY_IMPORT:
    for path in sorted((ROOT / folder).rglob("*.py")):
      parts = path.relative_to(ROOT).with_suffix("").parts
      names.append(".".join(("explorax", *parts)).removesuffix(".__init__"))
  return names


def _path(name: str) -> pathlib.Path:
  path = ROOT.joinpath(*name.split(".")[1:])
  return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


def test_imports_within_the_package_are_absolute():
  """Neither relative, nor by a bare folder.

  `import losses` works by accident where the repository's root is on the path, and
  gives a second copy of every module.
  """
  wrong = [
    f"{_name(path)}:{line} imports {name}"
    for path in (*_sources(), *_tests())
    for line, name in _imports(path)
    if name.startswith(".") or name.split(".")[0] in MAY_IMPORT
  ]
  assert not wrong, "write `from explorax.folder import module`"


def test_imports_within_the_package_are_of_modules():
  """Names are used through their module; only an `__init__.py` passes names on."""
  wrong = [
    f"{_name(path)}:{line} imports {name}"
    for path in _sources()
    if path.name != "__init__.py"
    for line, name in _imports(path)
    if name.startswith("explorax.") and not _is_module(name)
  ]
  assert not wrong, "import the module and use the name through it"


def test_imports_point_one_way():
  wrong = [
    f"{_name(path)}:{line} imports {name}"
    for path in _sources()
    for folder in [_name(path).split("/")[0]]
    for line, name in _imports(path)
    if name.startswith("explorax.")
    and name.split(".")[1] not in {folder, *LEAVES, *MAY_IMPORT.get(folder, MAY_IMPORT)}
  ]
  assert not wrong, "papers → experiments → agents → networks, exploration, losses"


def _is_for_types(node: ast.AST) -> bool:
  return isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)


def _edges(folder: str) -> dict[str, set[str]]:
  """Module or folder in `folder` → the others there that it imports to run.

  What is imported for annotations alone does not count.
  """
  edges = collections.defaultdict(set)
  for path in sorted((ROOT / folder).rglob("*.py")):
    source = path.relative_to(ROOT / folder).with_suffix("").parts[0]
    annotations = {
      found
      for node in _statements(_tree(path))
      if _is_for_types(node)
      for found in _imports_of(node)
    }
    for _, name in set(_imports(path)) - annotations:
      parts = name.split(".")
      if parts[:2] == ["explorax", folder] and len(parts) > 2 and parts[2] != source:
        edges[source].add(parts[2])
  return edges


def test_imports_within_experiments_point_one_way():
  rank = {unit: i for i, units in enumerate(ORDER) for unit in units}
  wrong = [
    f"{source} imports {target}"
    for source, targets in _edges("experiments").items()
    for target in sorted(targets)
    if source in rank and rank.get(target, 0) > rank[source]
  ]
  assert not wrong, "mains → reports → runners → the others"


@pytest.mark.parametrize("folder", ["agents", "experiments", "papers"])
def test_no_two_folders_import_each_other(folder):
  edges = _edges(folder)
  edges.pop("__init__", None)
  try:
    graphlib.TopologicalSorter(edges).prepare()
  except graphlib.CycleError as error:
    pytest.fail(f"{folder}: {' ← '.join(error.args[1])}")


def test_libraries_are_imported_in_their_folders_only():
  wrong = [
    f"{_name(path)}:{line} imports {name}"
    for path in _sources()
    for line, name in _imports(path)
    for homes in [ONLY_IN.get(name.split(".")[0])]
    if homes and not f"{_name(path)}/".startswith(tuple(f"{home}/" for home in homes))
  ]
  assert not wrong, f"only these folders import these libraries: {ONLY_IN}"


def test_losses_need_few_libraries():
  wrong = [
    f"{_name(path)}:{line} imports {name}"
    for path in _sources()
    if _name(path).startswith("losses/")
    for line, name in _imports(path)
    if name.split(".")[0] not in LOSSES_NEED | sys.stdlib_module_names
  ]
  assert not wrong, f"losses import nothing but {LOSSES_NEED}"


def _libraries(name: str) -> set[str]:
  """What importing a module of ours imports at the top of files, itself or through
  others of ours."""
  libraries, seen, left = set(), set(), {name}
  while left:
    seen |= left
    imported = {
      found
      for each in left
      for node in _tree(_path(each)).body
      if isinstance(node, ast.Import | ast.ImportFrom)
      for _, found in _imports_of(ast.Module([node], []))
    }
    libraries |= {each.split(".")[0] for each in imported}
    # `explorax.losses.retrace` imports the package `explorax.losses`, too.
    parts = {each.rpartition(".")[0] for each in imported} | imported
    left = {x for x in parts if x in _modules()} - seen
  return libraries


def _is_installed(libraries: set[str]) -> bool:
  return all(importlib.util.find_spec(each) is not None for each in libraries)


def test_importing_the_package_alone_is_light():
  """Its parts are there all the same, and no others."""
  code = f"""
import sys
before = set(sys.modules)
import explorax
loaded = {{name.split(".")[0] for name in set(sys.modules) - before}}
assert loaded <= {{"explorax", *sys.stdlib_module_names}}, loaded
assert set({sorted(MAY_IMPORT)!r}) <= set(dir(explorax))
assert explorax.losses.retrace is sys.modules["explorax.losses"].retrace
try:
  explorax.no_such_part
except AttributeError:
  sys.exit()
sys.exit("explorax has everything")
"""
  command = [sys.executable, "-P", "-c", code]
  done = subprocess.run(command, capture_output=True, text=True, check=False)
  assert done.returncode == 0, done.stderr


def test_importing_computes_and_prints_nothing():
  """No array is made, no thread started, nothing printed; Reverb and Ray are not
  loaded but by the modules that need them.

  Losses load nothing beyond jax and chex.
  """
  of_servers = {"reverb", "tensorflow", "ray"}
  optional = {"ale_py", "cv2", "PIL", "stable_baselines3", "wandb"} | of_servers
  libraries = {name: _libraries(name) for name in _modules()}
  modules = [x for x in libraries if _is_installed(libraries[x] & optional)]
  on_servers = [x for x in modules if libraries[x] & of_servers]
  others = [x for x in modules if x not in on_servers]
  code = f"""
import importlib, sys, threading
import chex, jax

before = set(sys.modules)
import explorax.losses
loaded = {{name.split(".")[0] for name in set(sys.modules) - before}}
assert loaded - sys.stdlib_module_names == {{"explorax"}}, loaded

def import_all(modules):
  for name in modules:
    importlib.import_module(name)
  assert not jax._src.xla_bridge.backends_are_initialized(), "something computes"
  assert threading.active_count() == 1, threading.enumerate()

import_all({others!r})
heavy = {{"reverb", "ray", "matplotlib.pyplot", "launchpad"}} & set(sys.modules)
assert not heavy, heavy
import_all({on_servers!r})
"""
  done = subprocess.run(
    [sys.executable, "-P", "-c", code], capture_output=True, text=True, check=False
  )
  assert done.returncode == 0, done.stderr
  assert done.stdout == ""
