"""Most of the runner's modules need Ray."""

import importlib.util

collect_ignore = (
  []
  if importlib.util.find_spec("ray")
  else ["test_board.py", "test_run.py", "test_shards.py"]
)
