"""What is built: all of the sources, installed and imported from a wheel."""

import pathlib
import shutil
import subprocess
import sys
import tomllib
import zipfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
# Package → its folder.
FOLDERS = {
  name: folder
  for name, folder in PROJECT["tool"]["setuptools"]["package-dir"].items()
  if (ROOT / folder).is_dir()
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
