"""Servers that accept connections from one network interface only."""

import contextlib
import os
import socket
import sys

import pytest

from explorax.agents import types
from explorax.agents.replay import loopback

pytestmark = pytest.mark.skipif(
  sys.platform != "linux", reason="filters of sockets are Linux's"
)

_NONE = 2**31 - 1  # An interface that no machine has.
_REPLAY = types.ReplaySpec(capacity=10, min_size=1, batch_size=1, updates_per_step=1.0)


def _is_answered(port: int, host: str = "127.0.0.1", seconds: float = 30.0) -> bool:
  with contextlib.suppress(TimeoutError):
    socket.create_connection((host, port), timeout=seconds).close()
    return True
  return False


@pytest.fixture(params=["127.0.0.1", "::1"])
def listening(request):
  """(A socket that listens on all addresses, the loopback address of its kind.)"""
  if request.param == "::1" and not os.path.exists("/proc/net/if_inet6"):
    pytest.skip("this machine has no IPv6")
  family = socket.AF_INET6 if ":" in request.param else socket.AF_INET
  with socket.create_server(("", 0), family=family) as server:
    yield server, request.param


def test_only_one_interface_is_answered(listening):
  server, host = listening
  port = server.getsockname()[1]
  assert _is_answered(port, host)
  loopback.restrict(port, interface=_NONE)
  assert not _is_answered(port, host, seconds=0.3)
  loopback.restrict(port)
  assert _is_answered(port, host)


def _num_instructions(port: int) -> set[int]:
  """Of the filters of this process's sockets at the port."""
  get_filter = 26  # SO_GET_FILTER, whose length counts instructions.
  counts = set()
  for copy in loopback.listening(port):
    with copy:
      counts.add(len(copy.getsockopt(socket.SOL_SOCKET, get_filter, 1000)))
  return counts


@pytest.mark.reverb
def test_reverb_accepts_only_this_machine(declare):
  from explorax.agents.replay import reverb as reverb_replay

  agent = declare(_REPLAY)
  replay = reverb_replay.ReverbReplay(agent)
  try:
    assert _num_instructions(replay.port) == {4}
  finally:
    replay.close()
