"""The command `reproduce`, on figures that compute nothing much."""

import dataclasses
import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from explorax.experiments import output, reproduce
from explorax.experiments.figures import cache, registry, types
from explorax.experiments.recording import drawing

pytest.importorskip("matplotlib")


@dataclasses.dataclass(frozen=True)
class Config:
  sizes: tuple[int, ...] = (2, 3)
  num_seeds: int = 4

  def __post_init__(self):
    if min(self.sizes) < 2:
      raise ValueError(f"sizes are {self.sizes}; each must be at least 2.")


class Counting:
  """A figure whose tasks are counted, and fail as they are told."""

  def __init__(self):
    self.computed = []
    self.fails = set()

  def tasks(self, config):
    return [
      types.Task(f"size{size}", {"size": size, "num_seeds": config.num_seeds}, size)
      for size in config.sizes
    ]

  def run(self, settings, tick):
    tick(0.5)
    if settings["size"] in self.fails:
      raise RuntimeError("it was told to")
    self.computed.append(settings["size"])
    rng = np.random.default_rng(settings["size"])
    return {"x": settings["size"] + rng.random((settings["num_seeds"], 5))}

  def draw(self, done):
    fig, ((axes,),) = drawing.new()
    for index, task in enumerate(done):
      label = f"N = {task.settings['size']}"
      drawing.curve(axes, np.arange(5), task.results["x"], label=label, index=index)
    return fig

  def judge(self, done):
    means = [task.results["x"].mean() for task in done]
    return [types.Finding("it grows", f"{means}", bool(np.all(np.diff(means) > 0)))]


@pytest.fixture
def counting(monkeypatch):
  made = Counting()
  figure = types.Figure(
    name="test/fig1",
    title="Sizes",
    source="nobody",
    claim="the greater the size, the more of it.",
    config=Config(),
    quick=Config(sizes=(2,), num_seeds=1),
    tasks=made.tasks,
    run=made.run,
    draw=made.draw,
    judge=made.judge,
  )
  monkeypatch.setitem(registry.FIGURES, figure.name, figure)
  return made


@pytest.fixture
def call(tmp_path, counting, capsys):
  def run(*flags):
    code = reproduce.main(
      ["--figure=test/fig1", f"--output={tmp_path}", "--workers=1", *flags]
    )
    return code, *capsys.readouterr()

  return run


def test_a_second_call_only_draws(call, counting, tmp_path):
  code, out, err = call()
  assert (code, err) == (0, "")
  # The heaviest first, so that no processor idles at the end.
  assert counting.computed == [3, 2]
  assert (tmp_path / "test_fig1.png").read_bytes().startswith(b"\x89PNG")
  assert "held" in out and "it grows" in out
  page = (tmp_path / "figures.md").read_text()
  assert "![Sizes](test_fig1.png)" in page and "| held | it grows |" in page
  first = json.loads((tmp_path / "test_fig1.json").read_text())
  assert first["findings"][0]["verdict"] == "held"
  assert first["config"]["num_seeds"] == 4
  (tmp_path / "test_fig1.png").unlink()
  code, out, err = call()
  assert counting.computed == [3, 2] and "2 of them computed before" in out
  assert (tmp_path / "test_fig1.png").exists()


def test_a_figure_with_a_failed_task_is_finished_later(call, counting, tmp_path):
  counting.fails = {3}
  code, _, err = call()
  assert code == 1
  assert "size3 failed: RuntimeError: it was told to" in err and "1 of 2" in err
  assert not (tmp_path / "test_fig1.png").exists()
  counting.fails = set()
  assert call()[0] == 0
  assert counting.computed == [2, 3]


def test_when_the_time_is_up_what_is_complete_is_kept(
  call, counting, tmp_path, monkeypatch
):
  now = [0.0]
  monkeypatch.setattr(reproduce.time, "monotonic", lambda: now[0])

  def slow(settings, tick):
    now[0] += 40.0
    return Counting.run(counting, settings, tick)

  figure = dataclasses.replace(registry.FIGURES["test/fig1"], run=slow)
  monkeypatch.setitem(registry.FIGURES, "test/fig1", figure)
  flags = ("--set", "sizes=2,3,4", "--max_minutes=1")
  code, _, err = call(*flags)
  # The second one was under way, and is dropped.
  assert (code, counting.computed) == (3, [4]) and "the time is up" in err
  assert not (tmp_path / "test_fig1.png").exists()
  assert call(*flags)[0] == 3
  # The last one ends in time; to draw takes no task.
  assert call(*flags)[0] == 0
  assert counting.computed == [4, 3, 2]


def test_other_settings_are_computed_beside_what_there_is(call, counting):
  call()
  _, out, _ = call("--seeds=2")
  assert "other settings, and is kept" in out
  assert counting.computed == [3, 2, 3, 2]
  _, out, _ = call()
  assert counting.computed == [3, 2, 3, 2] and "2 of them computed before" in out


def test_another_version_is_computed_anew(call, counting, monkeypatch):
  call()
  figure = registry.FIGURES["test/fig1"]
  newer = dataclasses.replace(figure, revision=2)
  monkeypatch.setitem(registry.FIGURES, "test/fig1", newer)
  _, out, _ = call()
  assert out.count("is of another version") == 2
  assert counting.computed == [3, 2, 3, 2]


def test_a_truncated_file_is_computed_anew(call, counting, tmp_path):
  call()
  (path,) = (tmp_path / "raw" / "test_fig1").glob("size3-*.npz")
  path.write_bytes(path.read_bytes()[:100])
  _, out, _ = call()
  assert f"{path} cannot be read; computing size3" in out
  assert counting.computed == [3, 2, 3]


def test_a_smoke_version_tells_nothing_and_replaces_nothing(call, tmp_path):
  call()
  _, out, _ = call("--quick")
  assert "cannot be told" in out
  assert {path.name for path in tmp_path.glob("*.png")} == {
    "test_fig1.png",
    "test_fig1_quick.png",
  }
  page = (tmp_path / "figures.md").read_text()
  assert "| held |" in page and "| cannot be told |" in page


@pytest.mark.parametrize(
  ("flags", "words"),
  [
    (["--figure=test/fig2"], "no figure 'test/fig2'. Did you mean"),
    (["--figure="], "--figure is missing"),
    (["--set", "sizes=1"], "each must be at least 2"),
    (["--set", "size=5"], "Did you mean sizes?"),
    (["--seeds=0"], "at least 1"),
    (["--worker=0"], "Did you mean --workers?"),
  ],
)
def test_refusals_are_one_sentence(call, flags, words):
  code, _, err = call(*flags)
  assert code == 2 and words in err and err.count("\n") == 1


def test_results_cannot_be_written_where_a_file_is(call, tmp_path, capsys):
  (tmp_path / "raw").write_text("")
  code, _, err = call()
  assert code == 1 and "could not be written" in err


OWN = """
import dataclasses, os, signal, time
import numpy as np
from explorax.experiments.figures import types
from explorax.experiments.recording import drawing

@dataclasses.dataclass(frozen=True)
class Config:
  what: tuple[str, ...] = ("one", "two", "three")
  num_seeds: int = 3

class Awkward(RuntimeError):
  def __init__(self, message, weights):  # Cannot be unpickled.
    super().__init__(message)

def run(settings, tick):
  tick(0.5)
  if settings["what"] == "raise":
    raise Awkward("the loss became NaN.", np.zeros(3))
  if settings["what"] == "kill":
    os.kill(os.getpid(), signal.SIGKILL)
  if settings["what"] == "wait":
    time.sleep(600)
  return {"pid": np.array(os.getpid())}

FIGURE = types.Figure(
  name="own/fig1", title="Own", source="nobody", claim="it is.",
  config=Config(), quick=Config(what=("one",), num_seeds=1),
  tasks=lambda config: [
    types.Task(f"{i}{what}", {"what": what, "i": i})
    for i, what in enumerate(config.what)
  ],
  run=run,
  draw=lambda done: drawing.new()[0],
  judge=lambda done: [
    types.Finding("it is", str([int(d.results["pid"]) for d in done]), True)
  ],
)
"""


@pytest.fixture
def own(tmp_path, monkeypatch, capsys):
  """Calls the command for a figure of the user's own, in two processes."""
  (tmp_path / "my_figures.py").write_text(OWN)
  monkeypatch.syspath_prepend(tmp_path)
  monkeypatch.setenv("PYTHONPATH", str(tmp_path))  # For the processes.
  flags = ["--figure=my_figures:FIGURE", f"--output={tmp_path / 'out'}"]

  def run(*more):
    code = reproduce.main([*flags, "--workers=2", *more])
    return code, *capsys.readouterr()

  yield run
  sys.modules.pop("my_figures", None)


def test_figures_of_ones_own_are_computed_in_processes(own):
  code, out, err = own()
  assert (code, err) == (0, "")
  pids = json.loads(out.split("it is", 1)[1].splitlines()[0])
  assert os.getpid() not in pids and 1 <= len(set(pids)) <= 2


def test_a_task_that_raises_in_a_process_fails_alone(own):
  code, _, err = own("--set=what=one,raise,two,three")
  assert code == 1
  assert "1raise failed: Awkward: the loss became NaN.\n" in err
  assert "1 of 4 tasks failed" in err


def test_a_process_that_is_killed_is_told_and_nothing_is_lost(own, tmp_path):
  own()
  code, _, err = own("--set=what=one,two,three,kill")
  assert code == 1 and "ended from outside" in err
  kept = list((tmp_path / "out" / "raw" / "own_fig1").glob("*.npz"))
  assert len(kept) >= 3
  code, out, _ = own("--set=what=one,two,three")
  assert code == 0 and "3 of them computed before" in out


@pytest.mark.parametrize(
  ("name", "words"),
  [
    ("my_figures:FIG", "no figure 'my_figures:FIG'"),
    ("my_figure:FIGURE", "No module named 'my_figure'"),
    ("my_figures:OS", "no figure"),
    ("my_figures:Config", "is a type, and no types.Figure"),
  ],
)
def test_refuses_what_is_no_figure(own, name, words):
  code, _, err = own(f"--figure={name}")
  assert code == 2 and words in err and err.count("\n") == 1


def test_a_stop_in_mid_task_ends_the_processes(tmp_path):
  (tmp_path / "my_figures.py").write_text(OWN)
  flags = ["--figure=my_figures:FIGURE", "--workers=2", "--set=what=wait,wait"]
  process = subprocess.Popen(
    [
      *(sys.executable, "-m", "explorax.experiments.reproduce"),
      *(*flags, f"--output={tmp_path / 'out'}"),
    ],
    stdout=subprocess.PIPE,
    stderr=subprocess.PIPE,
    text=True,
    cwd=tmp_path,
    start_new_session=True,
  )
  assert process.stdout is not None and "2 tasks" in process.stdout.readline()
  time.sleep(3)
  os.killpg(process.pid, signal.SIGINT)  # As a terminal does, to all of them.
  _, err = process.communicate(timeout=60)
  assert process.returncode == 130
  assert "the same call goes on" in err and "Traceback" not in err
  end = time.monotonic() + 20
  with pytest.raises(ProcessLookupError):
    while time.monotonic() < end:
      os.killpg(process.pid, 0)
      time.sleep(0.1)


def test_all_figures_are_listed(capsys):
  assert reproduce.main(["--list"]) == 0
  lines = capsys.readouterr().out.splitlines()
  assert [line.split()[0] for line in lines] == list(registry.FIGURES)


def test_an_interrupted_task_is_not_kept(call, counting, tmp_path, monkeypatch):
  def run(settings, tick):
    raise types.InterruptedTaskError

  figure = dataclasses.replace(registry.FIGURES["test/fig1"], run=run)
  monkeypatch.setitem(registry.FIGURES, "test/fig1", figure)
  call()
  assert not list(tmp_path.glob("raw/test_fig1/*.npz"))


def test_few_seeds_tell_nothing_and_replace_nothing(call, tmp_path):
  call()
  first = (tmp_path / "test_fig1.json").read_bytes()
  _, out, _ = call("--seeds=2")
  assert "cannot be told" in out
  assert (tmp_path / "test_fig1.json").read_bytes() == first
  assert len(list(tmp_path.glob("test_fig1-*.png"))) == 1


def test_what_cannot_be_read_stops_no_other_figure(call, tmp_path):
  (tmp_path / "ngu_fig7.json").write_text("{")
  (tmp_path / "test_fig1_quick.json").write_text("{}")
  assert call()[0] == 0
  page = (tmp_path / "figures.md").read_text()
  assert page.count("This file cannot be read.") == 2 and "![Sizes]" in page


def test_a_damaged_byte_is_computed_anew(tmp_path, counting):
  directory = output.RunDirectory.create(tmp_path)
  figure = registry.FIGURES["test/fig1"]
  task = figure.tasks(Config())[0]
  store = cache.Cache(directory, figure)
  content = np.arange(40.0)
  store.write(task, types.Done(task.settings, {"x": content}, 1.0))
  (path,) = (tmp_path / "raw" / "test_fig1").glob("size2-*.npz")
  good = path.read_bytes()
  for i in range(len(good)):
    path.write_bytes(good[:i] + bytes([good[i] ^ 0xFF]) + good[i + 1 :])
    found = store.read(task)
    if found.done is not None:  # A byte that nothing reads.
      np.testing.assert_array_equal(found.done.results["x"], content)


def test_cache_takes_no_pickles(tmp_path, counting):
  """What is loaded is data: an array of objects is refused."""
  directory = output.RunDirectory.create(tmp_path)
  figure = registry.FIGURES["test/fig1"]
  task = figure.tasks(Config())[0]
  store = cache.Cache(directory, figure)
  store.write(task, types.Done(task.settings, {"x": np.zeros(2)}, 1.0))
  (path,) = (tmp_path / "raw" / "test_fig1").glob("size2-*.npz")
  np.savez(path, x=np.array([{}], object))
  assert store.read(task).done is None


SLOW = """
import time, sys
from explorax.experiments import reproduce
from explorax.experiments.figures import ngu_mixtures, registry, types
import dataclasses
figure = registry.FIGURES["ngu/fig7"]
def run(settings, tick):
  print("begun", flush=True)
  for i in range(1000):
    tick(i / 1000)
    time.sleep(0.05)
registry.FIGURES["ngu/fig7"] = dataclasses.replace(figure, run=run)
flags = ["--figure=ngu/fig7", "--workers=1", "--output=" + sys.argv[1]]
sys.exit(reproduce.main(flags))
"""


def test_ctrl_c_ends_it_with_its_code(tmp_path):
  process = subprocess.Popen(
    [sys.executable, "-c", SLOW, str(tmp_path)],
    stdout=subprocess.PIPE,
    stderr=subprocess.PIPE,
    text=True,
    env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"},
  )
  assert process.stdout is not None
  while "begun" not in process.stdout.readline():
    assert process.poll() is None
  process.send_signal(signal.SIGINT)
  start = time.monotonic()
  _, err = process.communicate(timeout=60)
  assert process.returncode == 130 and "the same call goes on" in err
  assert time.monotonic() - start < 30
