"""Paper 1's figure 3d: the sparse swing-up of CartPole, which takes long."""

from explorax.papers import figures
from explorax.papers.ez import comparisons, runs

_RULES = [runs.EPSILON, runs.EZ]
# The paper's text gives no episodes. By 1500, εz-greedy's returns no longer rise.
_BASES = {"32,768 features": ("full", 300), "792 features": ("total", 1500)}
_MAP = {"domain": "cartpole", "what": "map"}

FIGURES = (
  figures.Figure(
    name="ez/fig3_cartpole",
    title="ε-greedy and εz-greedy in the sparse swing-up of CartPole",
    source=f"{runs.PAPER}, figure 3d",
    runs=[
      *(
        figures.Grid(
          runs.learn,
          _RULES,
          {**runs.CARTPOLE, "basis": basis, "episodes": episodes},
          num_seeds=30,
          seeds_per_task=2 if basis == "full" else 10,
        )
        for basis, episodes in _BASES.values()
      ),
      figures.Grid(
        runs.wander,
        _RULES,
        {**runs.CARTPOLE, "basis": "full", **_MAP, "epsilon": 1.0, "steps": 10_000},
        num_seeds=30,
        seeds_per_task=30,
      ),
    ],
    quick={"episodes": 3, "order": 2, "time_limit": 200, "steps": 1000, "num_seeds": 2},
    panels=[
      [
        comparisons.curves(
          y="returns",
          where={"basis": basis, "what": None},
          axes={"title": label, "ylabel": "return (of at most 1000)"},
        )
        for label, (basis, _) in _BASES.items()
      ],
      [
        comparisons.maps(
          where=_MAP,
          flipped=True,
          axes={"xlabel": "place, −1.8 to 1.8 m", "ylabel": "angle, −π to π"},
        )
      ],
    ],
    claims=[
      *(
        comparisons.earns_more(
          f"CartPole, {label}", {"basis": basis, "what": None}, "returns"
        )
        for label, (basis, _) in _BASES.items()
      ),
      comparisons.visits_earlier("CartPole", _MAP),
    ],
  ),
)
