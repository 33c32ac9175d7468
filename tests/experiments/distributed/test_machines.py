"""A run on a cluster of two machines, as far as one machine can be two.

Each is a Ray node with cores of its own, started by the commands of the README.
"""

import contextlib
import json
import os
import pathlib
import secrets
import socket
import subprocess
import sys
import time

import pytest

from explorax.experiments import run

pytest.importorskip("ray")
psutil = pytest.importorskip("psutil")

CORES = 3  # Of each machine.
# The collector, replay, the learner and three actors have a core each: all of them.
COMMAND = (
  "--agent=dqn",
  "--env=explorax.environments.testing:fake",
  "--runner=distributed",
  "--num_actors=3",
  "--steps=600",
  "--set=min_replay_size=20",
  "--set=batch_size=4",
  "--set=hidden_sizes=4",
)


def _start(environment: dict[str, str], *flags: str) -> "subprocess.Popen[str]":
  """A node that is there when this returns, and ends with the process."""
  command = [str(pathlib.Path(sys.executable).parent / "ray"), "start", "--block"]
  command += [f"--num-cpus={CORES}", "--disable-usage-stats", *flags]
  node = subprocess.Popen(
    command,
    env=environment,
    stdout=subprocess.PIPE,
    stderr=subprocess.STDOUT,
    text=True,
  )
  assert node.stdout is not None
  said = []
  for line in node.stdout:
    said.append(line)
    if "--block" in line:  # "… This command will now block forever …"
      return node
  raise AssertionError("".join(said))


@pytest.fixture(scope="module")
def machines():
  """(The address of a cluster of two, the environment of who may join it)."""
  with socket.socket() as probe:
    probe.bind(("127.0.0.1", 0))
    address = f"127.0.0.1:{probe.getsockname()[1]}"
  environment = {
    **os.environ,
    "RAY_AUTH_MODE": "token",
    "RAY_AUTH_TOKEN": secrets.token_hex(32),
  }
  head = ("--head", "--node-ip-address=127.0.0.1", "--include-dashboard=false")
  nodes = []
  try:
    nodes.append(_start(environment, *head, f"--port={address.split(':')[1]}"))
    nodes.append(_start(environment, f"--address={address}"))
    yield address, environment
  finally:
    ours = [child for n in nodes for child in psutil.Process(n.pid).children(True)]
    for node in reversed(nodes):
      node.terminate()
      node.wait(60)
    for child in psutil.wait_procs(ours, timeout=10)[1]:
      child.kill()


def _parents(pids: dict[str, int]) -> set[int]:
  """Who has started these processes; those that have ended are left out."""
  found = set()
  for pid in pids.values():
    with contextlib.suppress(psutil.NoSuchProcess):
      found.add(psutil.Process(pid).ppid())
  return found


@pytest.mark.reverb
def test_a_run_has_processes_on_both(machines, tmp_path):
  address, environment = machines
  directory = tmp_path / "run"
  flags = (*COMMAND, f"--ray_address={address}", f"--output={directory}")
  driver = subprocess.Popen(
    [sys.executable, "-m", "explorax.experiments.run", *flags],
    env=environment,
    stdout=subprocess.PIPE,
    stderr=subprocess.STDOUT,
    text=True,
  )
  held, parents = directory / "processes.json", set()
  while driver.poll() is None and len(parents) < 2:
    time.sleep(0.1)
    pids = json.loads(held.read_text()) if held.exists() else {}
    pids.pop("driver", None)
    parents = _parents(pids)
  said, _ = driver.communicate(timeout=300)
  assert driver.returncode == 0, said
  assert len(parents) == 2, said  # The two nodes.
  summary = json.loads((directory / "summary.json").read_text())
  assert (summary["status"], summary["env_steps"]) == ("finished", 600)
  assert summary["learner_updates"] > 0
  assert not summary.get("replacements")


def test_a_cluster_without_our_token_is_refused_in_a_sentence(machines, tmp_path):
  address, environment = machines
  others = {**environment, "RAY_AUTH_TOKEN": secrets.token_hex(32)}
  flags = (*COMMAND, f"--ray_address={address}", f"--output={tmp_path / 'run'}")
  done = subprocess.run(
    [sys.executable, "-m", "explorax.experiments.run", *flags],
    env=others,
    capture_output=True,
    text=True,
    timeout=300,
  )
  assert done.returncode != 0
  assert "Traceback" not in done.stderr
  said = done.stderr.splitlines()[-1]  # Ray and TensorFlow have spoken before.
  assert said.startswith(f"explorax: the Ray cluster of --ray_address={address} was")
  assert "RAY_AUTH_TOKEN" in said


def test_an_address_where_nothing_listens_is_refused_at_once(tmp_path, capsys):
  flags = (*COMMAND, "--ray_address=127.0.0.1:1", f"--output={tmp_path / 'run'}")
  assert run.main([*flags]) != 0
  assert (
    "no Ray cluster answers at --ray_address=127.0.0.1:1" in capsys.readouterr().err
  )
