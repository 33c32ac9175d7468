"""A user's code, which `make types` checks with mypy --strict and with pyright."""

import gymnasium
import jax
import jax.numpy as jnp

import explorax
from explorax import environments, exploration, losses, networks
from explorax.agents.q import agent as q_agent
from explorax.agents.q import config as q_config


def td_error(q: jax.Array, reward: jax.Array) -> jax.Array:
  return losses.double_q(q, jnp.int32(0), reward, 0.99, q, q)


def train() -> dict[str, jax.Array]:
  environment = environments.make("jax:chain/5", seed=0)
  config = q_config.QConfig(exploration=exploration.EpsilonGreedy(0.1))
  agent = q_agent.make_agent(config, environments.spec(environment))
  result = explorax.train(agent, environment, steps=100)
  named = explorax.make_agent("tdu", gymnasium.make("CartPole-v1"), beta=0.5)
  several = explorax.train(named, "gym:CartPole-v1", steps=100, seeds=2)
  returns = explorax.evaluate(several[0], "gym:CartPole-v1")
  return {"returns": jnp.asarray(returns + result.episodes["episode_return"][-1])}


def is_torso(name: str) -> bool:
  return name in networks.TORSOS


def mistake() -> None:
  explorax.train(3, "jax:chain/5")  # type: ignore[call-overload]
