"""Fuzz cases: commands on damaged runs, weights and sweeps (see `fuzz`)."""

import fcntl
import functools
import hashlib
import io
import json
import os
import pathlib
import random
import re
import shutil
import struct
import sys
import zipfile
from collections.abc import Callable, Iterator
from typing import Any

import dm_env
import fuzz
import fuzz_inputs
import numpy as np

from explorax.environments import testing
from explorax.experiments import evaluate, export, report, run, sweep, weights

_RUN = [
  "--agent=dqn",
  f"--env={fuzz_inputs.MODULE}:fragile",
  "--replay=memory",
  "--steps=60",
  "--checkpoint_every=20",
  "--max_env_failures=0",
  "--output=run",
  "--set=hidden_sizes=4",
  "--set=batch_size=4",
  "--set=min_replay_size=20",
]
_SWEEP = [
  "--agents=bsuite.baselines.random:default_agent",
  "--sweep=bandit/0,catch/0",
  "--episodes=3",
  "--workers=1",
  "--output=sweep",
]
_ASIDE = "refused_step"  # A damaged checkpoint is renamed to this.

Damage = Callable[[pathlib.Path], Any]


class _Fragile(testing.FakeEnvironment):
  """Crashes in step 45 while `crashes` is True."""

  crashes = True

  def step(self, action: Any) -> dm_env.TimeStep:
    if self.crashes and self._total_steps == 45:
      raise RuntimeError("crash of the test")
    return super().step(action)


def _make_originals(folder: pathlib.Path) -> None:
  """Makes a run that crashed between checkpoints, its weights, and a sweep."""
  vars(sys.modules[fuzz_inputs.MODULE])["fragile"] = _Fragile
  before = os.getcwd()
  os.chdir(folder)
  try:
    fuzz.command(run.main, _RUN)
    _Fragile.crashes = False
    fuzz.command(export.main, ["run", "--output=weights.npz"])
    fuzz.command(sweep.main, _SWEEP)
  finally:
    os.chdir(before)


def _flip(rng: random.Random, path: pathlib.Path) -> None:
  content = bytearray(path.read_bytes())
  content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
  path.write_bytes(content)


def _flip_an_array(rng: random.Random, path: pathlib.Path) -> None:
  """Flips a bit of an array; a flipped date does no harm."""
  content = bytearray(path.read_bytes())
  with zipfile.ZipFile(path) as archive:
    entry = rng.choice(archive.infolist())
  # The lengths of a local header's name and of its extra field.
  name, extra = struct.unpack_from("<HH", content, entry.header_offset + 26)
  begin = entry.header_offset + 30 + name + extra
  content[begin + rng.randrange(entry.compress_size)] ^= 1 << rng.randrange(8)
  path.write_bytes(content)


def _truncate(rng: random.Random, path: pathlib.Path) -> None:
  os.truncate(path, rng.randrange(path.stat().st_size))


def _append(rng: random.Random, path: pathlib.Path) -> None:
  with path.open("ab") as file:
    file.write(rng.randbytes(9))


def _remove(path: pathlib.Path) -> None:
  shutil.rmtree(path) if path.is_dir() else path.unlink()


def _replace(path: pathlib.Path, content: bytes | None) -> None:
  """Replaces a file by one with this content, or by a directory if it is None."""
  if path.exists():
    _remove(path)
  path.mkdir() if content is None else path.write_bytes(content)


def _edit(path: pathlib.Path, change: Callable[[dict[str, Any]], Any]) -> None:
  content = json.loads(path.read_text(encoding="utf-8"))
  change(content)
  path.write_text(json.dumps(content), encoding="utf-8")


def _checkpoints(path: pathlib.Path) -> list[pathlib.Path]:
  return sorted((path / "run/checkpoints").glob("step_*"))


def _edit_record(path: pathlib.Path, change: Callable[[dict[str, Any]], Any]) -> None:
  """Edits the record of the newest checkpoint, and updates its checksum."""
  newest = _checkpoints(path)[-1]
  record = newest / "record.json"
  _edit(record, change)
  entry = [record.stat().st_size, hashlib.sha256(record.read_bytes()).hexdigest()]
  _edit(newest / "manifest.json", lambda c: c["files"].update({"record.json": entry}))


def _edit_lines(change: Callable[[list[bytes]], Any], path: pathlib.Path) -> None:
  lines = path.read_bytes().splitlines(keepends=True)
  change(lines)
  path.write_bytes(b"".join(lines))


def _edit_arrays(change: Callable[[dict[str, Any]], Any], path: pathlib.Path) -> None:
  """Edits the arrays of a .npz file."""
  with np.load(path) as file:
    arrays = dict(file)
  change(arrays)
  content = io.BytesIO()
  np.savez(content, **arrays)
  path.write_bytes(content.getvalue())


def _of_checkpoints(folder: pathlib.Path, rng: random.Random) -> Iterator[fuzz.Case]:
  newest = _checkpoints(folder)[-1]
  files = sorted(path for path in newest.rglob("*") if path.is_file())
  for file in files:
    place = file.relative_to(folder)
    for damage in (_flip, rng.choice((_truncate, _append))):
      yield _resumed(
        folder,
        f"{damage.__name__[1:]} {file.name} of the newest",
        lambda path, damage=damage, place=place: damage(rng, path / place),
        _ASIDE,
      )
  yield _resumed(
    folder,
    "a file of the newest is missing",
    lambda path: _remove(path / rng.choice(files).relative_to(folder)),
    _ASIDE,
  )

  def each(damage: Damage) -> Damage:
    return lambda path: [damage(x) for x in _checkpoints(path)]

  for name, damage in {
    "all flipped": each(lambda x: _flip(rng, x / "record.json")),
    "all without a manifest": each(lambda x: _remove(x / "manifest.json")),
    "all empty": each(lambda x: _replace(x, None)),
    "all of them files": each(lambda x: _replace(x, b"")),
  }.items():
    yield _resumed(folder, name, damage, r"2 checkpoints in run")
  for name, change in {
    "of another format": lambda c: c.update(format=99),
    "of another run": lambda c: c["record"].update(run="x"),
    "without counts": lambda c: c["record"].pop("counts"),
    "with empty counts": lambda c: c["record"].update(counts={}),
    "with counts of words": lambda c: c["record"].update(counts="words"),
    "without env_steps": lambda c: c["record"].pop("env_steps"),
    "with env_steps of words": lambda c: c["record"].update(env_steps="many"),
    "without seconds": lambda c: c["record"].pop("seconds"),
    "without a companion": lambda c: c["record"].pop("companion"),
    "with a companion of words": lambda c: c["record"].update(companion="words"),
    "with a list for a record": lambda c: c.update(record=[]),
    "without arrays": lambda c: c.pop("arrays"),
    "with no arrays of state": lambda c: c["arrays"].update(state={}),
    "with a dtype of words": lambda c: _first_array(c, lambda a: a.__setitem__(1, "x")),
  }.items():
    yield _resumed(
      folder,
      f"a record {name}",
      functools.partial(_edit_record, change=change),
      "checkpoint",
    )


def _first_array(content: dict[str, Any], change: Callable[[list[Any]], Any]) -> None:
  change(next(iter(content["arrays"]["state"].values())))


def _of_files(folder: pathlib.Path, rng: random.Random) -> Iterator[fuzz.Case]:
  def renamed(lines: list[bytes]) -> None:
    lines[0] = lines[0].replace(b"episode_return", b"score")

  def bad_cell(lines: list[bytes]) -> None:
    lines[2] = b"x" + lines[2]

  def short_row(lines: list[bytes]) -> None:
    lines[3] = b"3,15\n"

  for name, damage in {
    "a renamed column": functools.partial(_edit_lines, renamed),
    "a bad cell": functools.partial(_edit_lines, bad_cell),
    "a short row": functools.partial(_edit_lines, short_row),
    "no header": functools.partial(_edit_lines, lambda lines: lines.pop(0)),
    "a row less": functools.partial(_edit_lines, lambda lines: lines.pop(1)),
    "only the header": functools.partial(
      _edit_lines, lambda x: x.__delitem__(slice(1, 99))
    ),
    "empty": lambda path: _replace(path, b""),
    "random bytes": lambda path: _replace(path, rng.randbytes(500)),
    "zeros": lambda path: _replace(path, bytes(500)),
    "a directory": lambda path: _replace(path, None),
    "missing": _remove,
  }.items():
    yield _resumed(
      folder,
      f"metrics.csv: {name}",
      lambda path, damage=damage: damage(path / "run/metrics.csv"),
      "metrics.csv",
    )
  settings = {
    "no JSON": lambda path: _replace(path, b"{"),
    "empty": lambda path: _replace(path, b""),
    "random bytes": lambda path: _replace(path, rng.randbytes(500)),
    "a list": lambda path: _replace(path, b"[]"),
    "null": lambda path: _replace(path, b"null"),
    "deeply nested": lambda path: _replace(path, b"[" * 100_000),
    "a directory": lambda path: _replace(path, None),
    "missing": _remove,
    "another seed": lambda path: _edit(path, lambda c: c.update(seed=5)),
    "another agent": lambda path: _edit(path, lambda c: c.update(agent="tdu")),
    "no agent": lambda path: _edit(path, lambda c: c.pop("agent")),
    "no config": lambda path: _edit(path, lambda c: c.pop("config")),
    "a config of words": lambda path: _edit(path, lambda c: c.update(config="x")),
  }
  passing = {
    "versions of words": lambda path: _edit(path, lambda c: c.update(versions="x")),
    "no versions": lambda path: _edit(path, lambda c: c.pop("versions")),
    "resumed of words": lambda path: _edit(path, lambda c: c.update(resumed="x")),
  }
  for name, damage in (settings | passing).items():
    yield _resumed(
      folder,
      f"config.json: {name}",
      lambda path, damage=damage: damage(path / "run/config.json"),
      r"config\.json|holds a run",
      may_pass=name in passing,
    )
  # The run writes these files again at its end, so damaged content may pass.
  for file in ("summary.json", "curve.png", "error.txt", "checkpoints/final.npz"):
    for name, content in {
      "random bytes": rng.randbytes(500),
      "a directory": None,
    }.items():
      yield _resumed(
        folder,
        f"{file}: {name}",
        lambda path, file=file, content=content: _replace(path / "run" / file, content),
        re.escape(file),
        may_pass=content is not None,
      )
  yield _resumed(
    folder,
    "checkpoints is a file",
    lambda path: _replace(path / "run/checkpoints", b""),
    "checkpoints",
  )
  yield _resumed(
    folder,
    "a lock of a process that is gone",
    lambda path: (path / "run/.lock").write_text("1", encoding="utf-8"),
    "",
    may_pass=True,
  )
  yield _resumed(folder, "a lock that is held", _hold_lock, "in use by another process")


def _hold_lock(path: pathlib.Path) -> None:
  """Locks a file; the lock is held while this function's attribute exists."""
  held = (path / "run/.lock").open("a")
  fcntl.flock(held, fcntl.LOCK_EX)
  _hold_lock.held = held  # type: ignore[attr-defined]


def _of_weights(folder: pathlib.Path, rng: random.Random) -> Iterator[fuzz.Case]:
  key = weights.SETTINGS

  def settings(change: Callable[[dict[str, Any]], Any]) -> Damage:
    def edit(arrays: dict[str, Any]) -> None:
      record = json.loads(arrays[key].tobytes())
      change(record)
      arrays[key] = np.frombuffer(json.dumps(record).encode(), np.uint8)

    return functools.partial(_edit_arrays, edit)

  def words(text: bytes) -> Damage:
    array = np.frombuffer(text, np.uint8)
    return functools.partial(_edit_arrays, lambda arrays: arrays.update({key: array}))

  def first(change: Callable[[Any], Any]) -> Damage:
    def edit(arrays: dict[str, Any]) -> None:
      name = next(name for name in arrays if name != key)
      arrays[name] = change(arrays[name])

    return functools.partial(_edit_arrays, edit)

  for name, damage in {
    "truncated": functools.partial(_truncate, rng),
    "empty": lambda path: _replace(path, b""),
    "text": lambda path: _replace(path, b"weights\n"),
    "random bytes": lambda path: _replace(path, rng.randbytes(500)),
    "a directory": lambda path: _replace(path, None),
    "a single array": lambda path: _replace(path, _npy()),
    "a pickle": first(lambda array: np.array([{"a": 1}], object)),
    "another shape": first(lambda array: array[..., None]),
    "words": first(lambda array: np.full(array.shape, "x")),
    "complex": first(lambda array: array.astype(np.complex64)),
    "NaN": first(lambda array: np.full_like(array, np.nan)),
    "an array more": functools.partial(
      _edit_arrays, lambda a: a.update(more=np.ones(2))
    ),
    "an array less": functools.partial(_edit_arrays, lambda a: a.pop(sorted(a)[-1])),
    "no settings": functools.partial(_edit_arrays, lambda a: a.pop(key)),
    "settings that are no JSON": words(b"{"),
    "settings that are a list": words(b"[]"),
    "settings that are no text": words(b"\xff\xfe"),
    "no agent": settings(lambda c: c.pop("agent")),
    "an unknown agent": settings(lambda c: c.update(agent="nope")),
    "no env": settings(lambda c: c.pop("env")),
    "an env that is a number": settings(lambda c: c.update(env=3)),
    "no settings of the agent": settings(lambda c: c.pop("settings")),
    "settings of the agent that are a number": settings(lambda c: c.update(settings=3)),
    "an unknown setting": settings(lambda c: c.update(settings=["nope=1"])),
  }.items():
    argv = ["weights.npz", f"--env={fuzz_inputs.MODULE}:good", "--episodes=1"]
    yield _case(
      folder, "weights", name, damage, evaluate.main, argv, r"weights\.npz|nope"
    )


def _npy() -> bytes:
  content = io.BytesIO()
  np.save(content, np.ones(3))
  return content.getvalue()


def _of_sweeps(folder: pathlib.Path, rng: random.Random) -> Iterator[fuzz.Case]:
  task = next((folder / "sweep/tasks").rglob("*.npz")).relative_to(folder / "sweep")
  for name, damage in {
    "flipped": functools.partial(_flip_an_array, rng),
    "truncated": functools.partial(_truncate, rng),
    "empty": lambda path: _replace(path, b""),
    "random bytes": lambda path: _replace(path, rng.randbytes(99)),
    "a single array": lambda path: _replace(path, _npy()),
    "missing": _remove,
    "without its rows": functools.partial(_edit_arrays, lambda a: a.clear()),
  }.items():
    for main, argv in ((sweep.main, _SWEEP), (report.main, ["sweep"])):
      yield _case(
        folder,
        "sweeps",
        f"{main.__module__.rpartition('.')[2]}, a task {name}",
        lambda path, damage=damage: damage(path / task),
        main,
        argv,
        re.escape(task.name),
        file="sweep",
        may_pass=name == "missing",  # A missing task is computed again or left out.
      )
  for name, damage in {
    "no JSON": lambda path: _replace(path, b"{"),
    "a list": lambda path: _replace(path, b"[]"),
    "random bytes": lambda path: _replace(path, rng.randbytes(99)),
    "empty": lambda path: _replace(path, b"{}"),
    "missing": _remove,
    "a directory": lambda path: _replace(path, None),
  }.items():
    for main, argv in ((sweep.main, _SWEEP), (report.main, ["sweep"])):
      yield _case(
        folder,
        "sweeps",
        f"{main.__module__.rpartition('.')[2]}, sweep.json {name}",
        lambda path, damage=damage: damage(path / "sweep.json"),
        main,
        argv,
        r"sweep\.json|no sweep",
        file="sweep",
        may_pass=main is sweep.main,  # The sweep writes sweep.json again.
      )


def _resumed(
  folder: pathlib.Path, name: str, damage: Damage, names: str, may_pass: bool = False
) -> fuzz.Case:
  """Resumes a damaged run; `damage` takes the folder that contains the run."""

  def attempt() -> fuzz.Seen:
    shutil.copytree(folder / "run", "run")
    damage(pathlib.Path())
    return fuzz.command(run.main, _RUN)

  group = "checkpoints" if "record" in name or "newest" in name else "runs"
  return fuzz.Case(group, name, attempt, names or "$^", may_pass)


def _case(
  folder: pathlib.Path,
  group: str,
  name: str,
  damage: Damage,
  main: Callable[..., int],
  argv: list[str],
  names: str,
  *,
  file: str = "weights.npz",
  may_pass: bool = False,
) -> fuzz.Case:
  """A command that reads a damaged file or folder."""

  def attempt() -> fuzz.Seen:
    original = folder / file
    (shutil.copytree if original.is_dir() else shutil.copy)(original, file)
    damage(pathlib.Path(file))
    return fuzz.command(main, argv)

  return fuzz.Case(group, f"{group}: {name}", attempt, names, may_pass)


def cases(folder: pathlib.Path, rng: random.Random) -> Iterator[fuzz.Case]:
  """All cases of this module; the undamaged files are made in `folder`."""
  _make_originals(folder)
  yield from _of_checkpoints(folder, rng)
  yield from _of_files(folder, rng)
  yield from _of_weights(folder, rng)
  yield from _of_sweeps(folder, rng)
