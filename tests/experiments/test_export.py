"""The weights of a run in one file, and their evaluation from this file alone."""

import dataclasses
import json
import pathlib
import shutil
import subprocess
import sys

import numpy as np
import pytest

from explorax import environments
from explorax.experiments import evaluate, export, playing, run, weights

TINY = (
  *("--agent=dqn", "--env=jax:deep_sea/4", "--replay=memory", "--output=out"),
  *("--set=hidden_sizes=4", "--set=batch_size=2", "--set=min_replay_size=12"),
)


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
  path = tmp_path_factory.mktemp("export")
  with pytest.MonkeyPatch.context() as patch:
    patch.chdir(path)
    assert run.main([*TINY, "--steps=40"]) == 0
  return path


@pytest.fixture(autouse=True)
def _there(directory, monkeypatch):
  monkeypatch.chdir(directory)


def test_numpy_reads_the_weights_and_the_settings():
  assert export.main(["out", "--output=agent.npz"]) == 0
  with (
    np.load("agent.npz", allow_pickle=False) as file,
    np.load("out/checkpoints/final.npz") as final,
  ):
    assert set(file.files) == {*final.files, "explorax/config.json"}
    for name in final.files:
      np.testing.assert_array_equal(file[name], final[name])
    config = json.loads(file["explorax/config.json"].tobytes())
  assert config["agent"] == "dqn" and config["config"]["hidden_sizes"] == [4]


def test_the_newest_checkpoint_of_a_killed_run_is_exported(tmp_path, capsys):
  pathlib.Path("out/summary.json").rename("out/summary")
  try:
    assert export.main(["out", f"--output={tmp_path}/killed.npz"]) == 0
  finally:
    pathlib.Path("out/summary").rename("out/summary.json")
  assert "step_000000000040" in capsys.readouterr().out
  final = weights.load_arrays("out/checkpoints/final.npz")
  killed = weights.load_arrays(tmp_path / "killed.npz")
  assert set(final) == set(killed)
  for name in final:
    np.testing.assert_array_equal(final[name], killed[name])


def test_an_export_does_not_import_the_environment(tmp_path, capsys):
  shutil.copytree("out", tmp_path / "copy")
  copy = tmp_path / "copy"
  (copy / "summary.json").unlink()
  record = json.loads((copy / "config.json").read_text()) | {"env": "evil:make"}
  (copy / "config.json").write_text(json.dumps(record))
  assert export.main([str(copy), f"--output={tmp_path}/agent.npz"]) == 0
  (tmp_path / "link").symlink_to(tmp_path / "agent.npz")
  for target in ("/dev/null", tmp_path / "link"):
    assert export.main(["out", f"--output={target}"]) == 2
    assert str(target) in capsys.readouterr().err
  assert pathlib.Path("/dev/null").is_char_device()


def test_evaluation_needs_no_package_of_training():
  export.main(["out", "--output=agent.npz"])
  code = (
    "import sys\n"
    "for name in ('acme', 'reverb', 'tensorflow', 'matplotlib', 'ray'):\n"
    "  sys.modules[name] = None\n"
    "from explorax.experiments import evaluate\n"
    "sys.exit(evaluate.main(['agent.npz', '--episodes=2', '--seed=3']))\n"
  )
  done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
  assert done.returncode == 0, done.stderr
  lines = done.stdout.splitlines()
  assert lines[0].startswith("episode 1: return ") and lines[0].endswith(" 4 steps")
  assert lines[2].startswith("dqn on jax:deep_sea/4: mean return ")


def test_settings_that_do_not_affect_the_weights_may_change(capsys):
  export.main(["out", "--output=agent.npz"])
  record = weights.load_settings("agent.npz")
  spec = environments.spec(environments.make(record["env"], seed=0))
  config = playing.make_agent(record, spec).config
  changed = playing.make_agent(record, spec, ["evaluation_epsilon=0.3"]).config
  assert changed == dataclasses.replace(config, evaluation_epsilon=0.3) != config
  short = ["agent.npz", "--episodes=1"]
  assert evaluate.main([*short, "--set", "evaluation_epsilon=0.3"]) == 0
  # A setting of the run may be repeated.
  assert evaluate.main([*short, "--set", "hidden_sizes=4"]) == 0
  assert evaluate.main([*short, "--set", "hidden_sizes=5"]) == 2
  assert "agent.npz" in capsys.readouterr().err


def test_files_that_cannot_be_played_are_named(capsys):
  """Weights without settings, and those of an agent for another environment."""
  assert evaluate.main(["out/checkpoints/final.npz"]) == 2
  assert "final.npz" in capsys.readouterr().err
  export.main(["out", "--output=agent.npz"])
  assert evaluate.main(["agent.npz", "--env=jax:deep_sea/5"]) == 2
  assert "agent.npz" in capsys.readouterr().err
  with np.load("agent.npz") as file:  # Infinite as float32.
    np.savez(
      "agent.npz", **{k: v * 1e300 if v.ndim == 2 else v for k, v in file.items()}
    )
  assert evaluate.main(["agent.npz"]) == 2
  assert "not finite" in capsys.readouterr().err


@pytest.mark.parametrize(
  ("changes", "flag"),
  [
    ({"env": "evil:make"}, "--env=evil:make"),
    ({"env": "gym:evil:Foo-v0"}, "--env=gym:evil:Foo-v0"),
    ({"settings": ["beta=0.1", "bonus=evil:Name"]}, "--set bonus=evil:Name"),
    ({"settings": ["bonus=evil.Name()"]}, "--set 'bonus=evil.Name()'"),
    ({"settings": ["bonus=(evil).Name()"]}, "--set 'bonus=(evil).Name()'"),
    ({"settings": ["beta=(evil).Name()"]}, "beta"),
    ({"settings": ["bonus=ｅｖｉｌ.Name()"]}, "ｅｖｉｌ"),
    ({"settings": ["bonus=evil. # \n Name()"]}, "evil"),
    ({"settings": ["exploration=Greedy(evil.Name())"]}, "evil"),
  ],
)
def test_a_file_cannot_choose_code_to_run(changes, flag, capsys):
  pathlib.Path("evil.py").write_text("raise SystemExit('imported')")
  export.main(["out", "--output=agent.npz"])
  with np.load("agent.npz") as file:
    arrays = dict(file)
  record = {**weights.load_settings("agent.npz"), **changes}
  arrays[weights.SETTINGS] = np.frombuffer(json.dumps(record).encode(), np.uint8)
  np.savez("mine.npz", **arrays)
  assert evaluate.main(["mine.npz"]) == 2
  assert flag in (said := capsys.readouterr().err) and "imported" not in said
  assert "evil" not in sys.modules
