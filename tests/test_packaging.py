"""What is built and installed: all of the sources, and the versions asked for."""

import email.parser
import pathlib
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile

import pytest
from packaging import requirements, specifiers, utils

import explorax

ROOT = pathlib.Path(__file__).resolve().parent.parent
# Folder → the package that it is.
FOLDERS = {
  "src/explorax": "explorax",
  **{
    folder: f"explorax.{folder}"
    for folder in (
      "losses",
      "exploration",
      "networks",
      "environments",
      "agents",
      "experiments",
      "papers",
    )
  },
}
# Lock file → the Python that it is for, and the extras that are in it.
LOCKS = {
  "py311-reverb.txt": ("3.11", ("all", "docs", "dev")),
  "newest.txt": ("3.12", ("all", "dev")),
}
CORE = {"chex", "dm-env", "dm-haiku", "jax", "numpy"}


def _project() -> dict:
  return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def _files(*patterns: str) -> dict[str, str]:
  """File → its place in a wheel; the links in src/explorax are not followed."""
  return {
    path.relative_to(ROOT).as_posix(): "/".join(
      (*package.split("."), path.relative_to(ROOT / folder).as_posix())
    )
    for folder, package in FOLDERS.items()
    for pattern in patterns
    for path in (ROOT / folder).rglob(pattern)
  }


def _sources() -> dict[str, str]:
  return _files("*.py")


def _data() -> dict[str, str]:
  """The tables and templates that modules read, and the mark of a typed package."""
  return _files("*.csv", "*.html", "py.typed")


def _lock(name: str) -> dict[str, tuple[str, bool]]:
  """A lock file's packages: name → (version, whether it has hashes)."""
  text = (ROOT / "requirements" / name).read_text(encoding="utf-8")
  entries = re.findall(r"^([\w.-]+)==(\S+)(.*(?:\n +--hash=.*)*)", text, re.MULTILINE)
  return {
    utils.canonicalize_name(package): (version, "--hash=sha256:" in rest)
    for package, version, rest in entries
  }


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> pathlib.Path:
  """A wheel of a copy of the sources, built without the network."""
  source = tmp_path_factory.mktemp("source")
  for folder in FOLDERS:
    ignore = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / folder, source / folder, symlinks=True, ignore=ignore)
  for name in ("pyproject.toml", "README.md", "LICENSE"):
    shutil.copy(ROOT / name, source / name)
  code = "from setuptools import build_meta; build_meta.build_wheel('wheel')"
  done = subprocess.run(
    [sys.executable, "-c", code],
    cwd=source,
    capture_output=True,
    text=True,
    check=False,
  )
  assert done.returncode == 0, done.stderr
  (built,) = (source / "wheel").glob("*.whl")
  return built


def test_every_folder_with_sources_is_listed_as_a_package():
  folders = {pathlib.PurePosixPath(path).parent for path in _sources().values()}
  packages = {folder.as_posix().replace("/", ".") for folder in folders}
  listed = _project()["tool"]["setuptools"]["packages"]
  assert sorted(listed) == sorted(packages), "pyproject.toml's list is not the folders."


def test_wheel_holds_every_source_and_table(wheel):
  with zipfile.ZipFile(wheel) as archive:
    names = {name for name in archive.namelist() if ".dist-info/" not in name}
  assert names == {*_sources().values(), *_data().values()}  # And nothing else.


def test_wheel_says_what_it_needs(wheel):
  with zipfile.ZipFile(wheel) as archive:
    (name,) = (name for name in archive.namelist() if name.endswith("/METADATA"))
    metadata = email.parser.Parser().parsestr(archive.read(name).decode())
    licences = [
      name for name in archive.namelist() if name.endswith("/licenses/LICENSE")
    ]
  extras = _project()["project"]["optional-dependencies"]
  assert set(metadata.get_all("Provides-Extra")) == set(extras)
  assert metadata["Version"] == explorax.__version__
  assert metadata["License-Expression"] == "Apache-2.0" and len(licences) == 1
  needs = [requirements.Requirement(line) for line in metadata.get_all("Requires-Dist")]
  base = {need.name: need.specifier for need in needs if need.marker is None}
  assert set(base) == CORE
  assert base["jax"] == specifiers.SpecifierSet(">=0.4.34")
  assert metadata["Requires-Python"] == ">=3.11"


def _needs(extras: tuple[str, ...]) -> list[requirements.Requirement]:
  """The core's requirements and those of extras, which may name further extras."""
  project, needs = _project()["project"], []
  lines = [*project["dependencies"]]
  for extra in extras:
    lines += project["optional-dependencies"][extra]
  for need in map(requirements.Requirement, lines):
    if need.name == "explorax":
      needs += _needs(tuple(need.extras))
    else:
      needs.append(need)
  return needs


@pytest.mark.parametrize("name", LOCKS)
def test_lock_satisfies_the_project(name):
  python, extras = LOCKS[name]
  where = {
    "python_version": python,
    "sys_platform": "linux",
    "platform_machine": "x86_64",
  }
  lock = _lock(name)
  for need in _needs(extras):
    if need.marker is None or need.marker.evaluate(where):
      version, _ = lock[utils.canonicalize_name(need.name)]
      assert need.specifier.contains(version), f"{need}: run `make lock`."


@pytest.mark.parametrize("name", [*LOCKS, "bootstrap.txt"])
def test_lock_files_are_hashed_and_name_no_machine(name):
  lock = _lock(name)
  assert len(lock) >= 4
  assert all(hashed for _, hashed in lock.values())
  text = (ROOT / "requirements" / name).read_text(encoding="utf-8")
  lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
  pinned = re.compile(r"[\w.-]+==\S+ \\| +--hash=sha256:[0-9a-f]{64}( \\)?")
  assert [line for line in lines if not pinned.fullmatch(line)] == []
