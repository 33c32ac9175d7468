"""What many actors and one learner ask of each part, from the costs of an item."""

import dataclasses
from typing import Any


@dataclasses.dataclass(frozen=True)
class Costs:
  """What was measured on one machine, of one agent.

  Attributes:
    steps_per_s: environment steps of one actor.
    insert_bytes_per_step: to replay, as they travel.
    insert_us_per_item: of replay's processor.
    steps_per_item: environment steps for each item inserted.
    sample_bytes_per_item: from replay, as they travel.
    sample_us_per_item: of replay's processor, that of new priorities included.
    weights_mib: of one version.
    publish_ms: of the learner, for each version.
    fetch_ms: of an actor, for each version.
    pull_us: of the collector's processor, for each report of an actor.
    pull_every: environment steps between two reports.
    batch_size: items of an update.
    updates_per_step: that the preset asks for.
  """

  steps_per_s: float
  insert_bytes_per_step: float
  insert_us_per_item: float
  steps_per_item: float
  sample_bytes_per_item: float
  sample_us_per_item: float
  weights_mib: float
  publish_ms: float
  fetch_ms: float
  pull_us: float
  pull_every: int
  batch_size: int
  updates_per_step: float


@dataclasses.dataclass(frozen=True)
class Cluster:
  """What there is.

  Attributes:
    num_actors: each with a core like the one that was measured.
    actors_per_machine: that share a copy of the weights.
    bytes_per_s: of a machine's network, in each direction.
    replay_cores: that replay computes on.
    updates_per_s: of the learner on its GPU: assumed, not measured.
  """

  num_actors: int = 256
  actors_per_machine: int = 32
  bytes_per_s: float = 1.25e9  # 10 Gbit/s.
  replay_cores: int = 4
  updates_per_s: float = 50.0


@dataclasses.dataclass(frozen=True)
class Demand:
  """What is asked of a part in a second, and what it can do."""

  part: str
  asked: float
  unit: str
  limit: float

  @property
  def share(self) -> float:
    return self.asked / self.limit


def demands(costs: Costs, cluster: Cluster, steps_per_s: float) -> list[Demand]:
  """What so many environment steps a second, of all actors, ask of each part.

  Updates follow from the steps, as `updates_per_step` says, for as long as the learner
  makes them; beyond that, replay and weights see the updates that it does make.
  """
  due = costs.updates_per_step * steps_per_s
  updates = min(due, cluster.updates_per_s)
  items = steps_per_s / costs.steps_per_item
  sampled = updates * costs.batch_size
  # As the runner publishes: at every `pull_every` steps of one actor.
  versions = updates / max(1, int(costs.updates_per_step * costs.pull_every))
  machines = -(-cluster.num_actors // cluster.actors_per_machine)
  pulls = steps_per_s / costs.pull_every
  weights = versions * costs.weights_mib * 2**20
  replay_cpu = items * costs.insert_us_per_item + sampled * costs.sample_us_per_item
  network, mb = cluster.bytes_per_s / 1e6, 1e-6
  return [
    Demand(
      "actors: acting", steps_per_s, "steps/s", cluster.num_actors * costs.steps_per_s
    ),
    Demand(
      "actors: reading weights",
      min(versions, pulls / cluster.num_actors) * costs.fetch_ms / 1000,
      "s of each",
      1.0,
    ),
    Demand("learner: updates due", due, "updates/s", cluster.updates_per_s),
    Demand("learner: publishing", versions * costs.publish_ms / 1000, "s", 1.0),
    Demand("learner's network: weights", machines * weights * mb, "MB/s", network),
    Demand(
      "replay's network: inserts",
      steps_per_s * costs.insert_bytes_per_step * mb,
      "MB/s",
      network,
    ),
    Demand(
      "replay's network: samples",
      sampled * costs.sample_bytes_per_item * mb,
      "MB/s",
      network,
    ),
    Demand("replay's processor", replay_cpu / 1e6, "cores", cluster.replay_cores),
    Demand("collector's processor", pulls * costs.pull_us / 1e6, "cores", 1.0),
  ]


def bottleneck(found: list[Demand]) -> Demand:
  """What comes to its limit first: that with the largest share, acting apart."""
  return max(found[1:], key=lambda demand: demand.share)


def table(costs: Costs, cluster: Cluster) -> list[dict[str, Any]]:
  """Rows: all actors at full speed, with the preset's updates per step and with fewer.

  Those are as many as the learner can make; each row after the parts names what comes
  to its limit first.
  """
  steps = cluster.num_actors * costs.steps_per_s
  fewest = min(costs.updates_per_step, cluster.updates_per_s / steps)
  asked = demands(costs, cluster, steps)
  eased = demands(dataclasses.replace(costs, updates_per_step=fewest), cluster, steps)
  rows: list[dict[str, Any]] = [
    {
      "part": one.part,
      "unit": one.unit,
      "limit": one.limit,
      "asked": one.asked,
      "share": one.share,
      "asked_with_fewer_updates": other.asked,
      "share_then": other.share,
    }
    for one, other in zip(asked, eased, strict=True)
  ]
  first, then = bottleneck(asked), bottleneck(eased)
  rows.append({"part": f"first bottleneck: {first.part}", "share": first.share})
  rows.append(
    {
      "part": f"with {fewest:.2g} updates per step: {then.part}",
      "share_then": then.share,
    }
  )
  return rows
