"""What is built: all of the sources, installed and imported from a wheel."""

import pathlib
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile

import pytest
from packaging import requirements, utils

ROOT = pathlib.Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
# Package → its folder.
FOLDERS = {
  name: folder
  for name, folder in PROJECT["tool"]["setuptools"]["package-dir"].items()
  if (ROOT / folder).is_dir()
}
# Lock file → the Python that it is for, and the extras that are in it.
LOCKS = {
  "py311-reverb.txt": ("3.11", ("all", "docs", "dev")),
  "newest.txt": ("3.12", ("all", "dev")),
}


def test_a_wheel_holds_every_source_and_table_and_can_be_imported(tmp_path):
  ignore = shutil.ignore_patterns("__pycache__")
  for folder in FOLDERS.values():
    shutil.copytree(ROOT / folder, tmp_path / folder, symlinks=True, ignore=ignore)
  for name in ("pyproject.toml", "README.md", "LICENSE"):
    shutil.copy(ROOT / name, tmp_path / name)
  build = "from setuptools import build_meta; build_meta.build_wheel('wheel')"
  subprocess.run([sys.executable, "-c", build], cwd=tmp_path, check=True)
  (wheel,) = (tmp_path / "wheel").glob("*.whl")
  expected = {
    "/".join((*package.split("."), path.relative_to(ROOT / folder).as_posix()))
    for package, folder in FOLDERS.items()
    for pattern in ("*.py", "*.csv", "*.html", "py.typed")
    for path in (ROOT / folder).rglob(pattern)  # Links are not followed.
  }
  with zipfile.ZipFile(wheel) as archive:
    names = {name for name in archive.namelist() if ".dist-info/" not in name}
  assert names == expected, "compare pyproject.toml's packages and package-data"
  code = f"import sys; sys.path[:0] = [{str(wheel)!r}]; import explorax.losses as it\n"
  code += f"assert it.__file__.startswith({str(wheel)!r}) and it.retrace"
  subprocess.run([sys.executable, "-P", "-c", code], cwd=tmp_path, check=True)


def _needs(extras: tuple[str, ...]) -> list[requirements.Requirement]:
  """The core's requirements and those of extras, which may name further extras."""
  lines, needs = [*PROJECT["project"]["dependencies"]], []
  for extra in extras:
    lines += PROJECT["project"]["optional-dependencies"][extra]
  for need in map(requirements.Requirement, lines):
    is_ours = need.name == PROJECT["project"]["name"]
    needs += _needs(tuple(need.extras)) if is_ours else [need]
  return needs


@pytest.mark.parametrize("name", LOCKS)
def test_a_lock_satisfies_the_project(name):
  python, extras = LOCKS[name]
  where = {"python_version": python, "sys_platform": "linux"}
  where["platform_machine"] = "x86_64"
  text = (ROOT / "requirements" / name).read_text(encoding="utf-8")
  lock = {
    utils.canonicalize_name(package): version
    for package, version in re.findall(r"^([\w.-]+)==(\S+)", text, re.MULTILINE)
  }
  for need in _needs(extras):
    if need.marker is None or need.marker.evaluate(where):
      version = lock[utils.canonicalize_name(need.name)]
      assert need.specifier.contains(version), f"{need}: run `make lock`."
