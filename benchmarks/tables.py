"""The rows that are measured, by table."""

from typing import Any

import peers
from bench import Call, Row

# Of DQN beside the peers, on CartPole. CleanRL fixes the layers.
DQN = {
  "hidden_sizes": [120, 84],
  "batch_size": 128,
  "replay_capacity": 10_000,
  "min_replay_size": 500,
  "n_step": 1,
  "learning_rate": 2.5e-4,
  "target_update_period": 500,
}
# RLeXplore's defaults; networks for vectors have one hidden layer of 256 units.
_BONUS = {"latent_dim": 128, "lr": 1e-3, "batch_size": 256}
_SEQUENCES = {"batch_size": 64, "sequence_length": 80, "sequence_period": 40}


def make(quick: bool = False) -> dict[str, list[Row]]:
  """Table → rows; quick ones are of short samples, which mean nothing."""
  seconds, steps = (0.05, 700) if quick else (5.0, 20_000)

  def train(agent: str, env: str, **flags: Any) -> Call:
    flags = {"agent": agent, "env": env, "seconds": seconds, **flags}
    return Call("ours:train", flags, peers.PYTHON if flags.pop("there", 0) else None)

  def peer(function: str, **arguments: Any) -> Call:
    return Call(f"peers:{function}", arguments, peers.PYTHON)

  def grow(
    agent: str, env: str, axis: str, *numbers: int, **settings: Any
  ) -> list[Row]:
    """Ours, with growing numbers of a flag or of a setting."""
    settings["min_replay_size"] = 1000
    rows = []
    for n in numbers:
      columns = {"agent": agent, "environment": env, axis: n}
      flags: dict[str, Any] = {axis: n} if axis in ("num_envs", "seeds") else {}
      changed = settings if flags else {**settings, axis: n}
      flags["settings"] = {"updates_per_step": 1 / flags.get("num_envs", 1), **changed}
      flags["runner"] = "local" if env.startswith(("gym:", "bsuite:")) else "device"
      rows.append(Row(columns, {"explorax": train(agent, env, **flags)}))
    return rows

  def deep_sea(size: int, peers_steps: int) -> Row:
    agent, env = "bootstrapped_dqn", f"bsuite:deep_sea/{(size - 10) // 2}"
    programs = {"explorax": train(agent, env)}
    programs["explorax, Reverb"] = train(agent, env, replay="reverb")
    length = {"warm_up": 200, "steps": 2 * size if quick else peers_steps}
    programs["bsuite"] = Call("peers:bsuite", {"size": size, **length})
    return Row({"N": size}, programs)

  def device(num_envs: int, steps_per_update: int, seeds: int) -> Row:
    interval = num_envs * steps_per_update  # In steps of all environments.
    loop = {"num_envs": num_envs, "seeds": seeds}
    settings = {**DQN, "updates_per_step": 1 / interval}
    flags = {**loop, "runner": "device", "settings": settings, "there": True}
    ours = train("dqn", "gymnax:CartPole-v1", **flags)
    loop |= {"interval": interval, "steps": steps * max(num_envs, interval // 100)}
    columns = {"environments": num_envs, "steps_per_update": steps_per_update}
    programs = {"explorax": ours, "purejaxrl": peer("purejaxrl", **loop, dqn=DQN)}
    return Row(columns | {"seeds": seeds}, programs)

  def acting(actors: int) -> Row:
    never = {"replay_capacity": 200_000, "min_replay_size": 200_000}  # It never learns.
    flags = {"num_actors": actors, "settings": never, "log_every": 2000}
    call = train("dqn", "bsuite:catch/0", runner="distributed", **flags)
    return Row({"actors": actors}, {"explorax": call})

  def bonus(name: str) -> Row:
    vector = {"num_envs": 16, "steps": 256 if quick else 1024, "settings": _BONUS}
    programs = {
      "explorax": Call("ours:bonus", {"bonus": name, **vector}, peers.PYTHON),
      "RLeXplore": peer("rlexplore", bonus=name, **vector),
      "no bonus": Call("ours:bonus", {"bonus": None, **vector}, peers.PYTHON),
    }
    return Row({"bonus": name}, programs)

  def atari(games: int) -> Row:
    size = {"games": games, "steps": steps // games}
    ours = Call("ours:atari", size)
    return Row({"games": games}, {"explorax": ours, "EnvPool": peer("envpool", **size)})

  def update(agent: str, env: str, **settings: int) -> Row:
    columns = {"agent": agent, "environment": env, **settings, "loops": "in full"}
    arguments = {"agent": agent, "env": env, "settings": settings, "seconds": seconds}
    return Row(columns, {"explorax": Call("ours:update", arguments)})

  def structure(agent: str, env: str) -> Row:
    task, kinds = {"agent": agent, "env": env}, ("CPU", "accelerator")
    calls = {of: Call("ours:structure", {**task, "of": of}) for of in kinds}
    return Row({"agent": agent}, calls)

  settings = {**DQN, "updates_per_step": 1}
  of_cartpole = {
    "explorax": train("dqn", "gym:CartPole-v1", settings=settings),
    "Stable-Baselines3": peer("sb3", steps=steps, warm_up=1000, dqn=DQN),
    "CleanRL, dqn_jax.py": peer("cleanrl", steps=steps, warm_up=1000, dqn=DQN),
  }
  python, swing_up = "gym:CartPole-v1", "jax:cartpole_swingup"
  cartpole, room = "gymnax:CartPole-v1", "navix:Navix-Empty-8x8-v0"
  thousands = ("replay_capacity", 10_000, 100_000, 1_000_000)
  members = ("num_members", 1, 10, 20, 40)
  wide = ("num_envs", 1, 16, 256, 4096)
  envs = {"dqn": "jax:cartpole", "tdu": "jax:deep_sea/10", "ngu": "jax:gridworld/12"}
  return {
    "deep_sea": [deep_sea(10, 800), deep_sea(50, 250)],
    "cartpole": [Row({}, of_cartpole)],
    "device": [device(*x) for x in ((1, 1, 1), (10, 1, 1), (10, 1, 8), (10, 1000, 1))],
    "structure": [structure(*x) for x in envs.items()],
    "atari": [atari(games) for games in (1, 8, 32)],
    "bonuses": [bonus(name) for name in ("RND", "ICM", "E3B")],
    "losses": [
      Row(loss, {"explorax": Call("rlax_pairs:loss", {**loss, "repeats": 300})})
      for name in ("retrace", "retrace, transformed", "n_step_q, double")
      for loss in ({"name": name, "gradient": False}, {"name": name, "gradient": True})
    ],
    "distributed": [acting(actors) for actors in (1, 2, 4)],
    "environments": grow("double_dqn", python, "num_envs", 1, 8, 64)
    + grow("double_dqn", swing_up, *wide),
    "seeds": grow("dqn", "jax:cartpole", "seeds", 1, 8, 64, 256),
    "members": grow("bootstrapped_dqn", "bsuite:deep_sea/0", *members)
    + grow("bootstrapped_dqn", "jax:deep_sea/10", *members),
    "replay": grow("double_dqn", python, *thousands, priority_exponent=0.6)
    + grow("double_dqn", swing_up, *thousands, priority_exponent=0.6),
    "acting": grow("double_dqn", cartpole, *wide)
    + grow("ngu", cartpole, *wide)
    + grow("double_dqn", room, *wide)
    + grow("ngu", room, *wide),
    "games": grow(
      "double_dqn", "atari:Pong", "num_envs", 8, 64, 256, replay_capacity=50_000
    ),
    "updates": [
      update("r2d2", "atari:Pong", **_SEQUENCES),
      update("ngu", "atari:Pong", **_SEQUENCES),
      update("tdu", "jax:deep_sea/50", batch_size=128, num_members=20),
    ],
  }
