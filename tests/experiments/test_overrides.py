import dataclasses
import json
import math
from typing import Any, Literal

import pytest

from explorax import exploration
from explorax.experiments import overrides, presets

pytestmark = pytest.mark.ops


@dataclasses.dataclass(frozen=True)
class Bonus:
  beta: float = 1.0

  def __post_init__(self):
    if self.beta < 0:
      raise ValueError(f"beta is {self.beta}; use 0 for none.")


@dataclasses.dataclass(frozen=True)
class Config:
  name: str = "a"
  flag: bool = False
  count: int = 1
  rate: float = 0.5
  limit: float | None = None
  either: int | str = 3
  sizes: tuple[int, ...] = (50, 50)
  pair: tuple[int, float] = (1, 2.0)
  kind: Literal["mean", "max"] = "mean"
  bonus: Bonus = dataclasses.field(default_factory=Bonus)
  second: Bonus | None = None
  third: Bonus | None = dataclasses.field(default_factory=Bonus)
  factor: float | Bonus = 1.0
  function: Any = math.sqrt

  def __post_init__(self):
    if self.count > self.rate * 100:
      raise ValueError(f"count {self.count} is too high for rate {self.rate}.")


@pytest.mark.parametrize(
  ("assignment", "field", "value"),
  [
    ("name=b", "name", "b"),
    ("name=x=y", "name", "x=y"),
    ("flag=true", "flag", True),
    ("flag=YES", "flag", True),
    ("count=7", "count", 7),
    ("count=1e1", "count", 10),
    ("rate=1e-1", "rate", 0.1),
    ("rate=inf", "rate", math.inf),
    ("limit=0.25", "limit", 0.25),
    ("limit=None", "limit", None),
    ("either=4", "either", 4),
    ("either=four", "either", "four"),
    ("sizes=64,32,16", "sizes", (64, 32, 16)),
    ("sizes=(64,)", "sizes", (64,)),
    ("sizes=", "sizes", ()),
    ("pair=3,1e-3", "pair", (3, 1e-3)),
    ("kind=max", "kind", "max"),
    ("bonus.beta=0.1", "bonus", Bonus(0.1)),
    ("third.beta=0.1", "third", Bonus(0.1)),
    ("third=none", "third", None),
    ("third=Bonus(0.1)", "third", Bonus(0.1)),
    ("bonus=Bonus(beta=2)", "bonus", Bonus(2)),
    (f"bonus={__name__}.Bonus(2)", "bonus", Bonus(2)),
    ("factor=Bonus(2.0)", "factor", Bonus(2.0)),
  ],
)
def test_reads_a_value_by_its_type(assignment, field, value):
  config = overrides.apply(Config(), [assignment])
  assert getattr(config, field) == value
  assert type(getattr(config, field)) is type(value)
  assert dataclasses.replace(config, **{field: getattr(Config(), field)}) == Config()


@pytest.mark.parametrize(
  ("assignment", "words"),
  [
    ("count", "field=value"),
    ("count=1.5", "count is '1.5'"),
    ("count=none", "count is 'none'"),
    ("rate=nan", "rate is 'nan'"),
    ("sizes=50,x", r"sizes\[1\] is 'x'"),
    ("pair=1", "pair is '1'.* 2 values"),
    ("kind=men", "mean, max. Did you mean mean"),
    ("cuont=3", "'cuont'. Did you mean count"),
    ("beta=3", r"Did you mean bonus.beta or third.beta\? Its fields are: name, flag"),
    ("bonus.bta=3", "Did you mean bonus.beta"),
    ("bonus=3", "bonus is '3'.* Bonus, .* bonus.FIELD"),
    ("bonus=Bonas(3)", "Bonas. Did you mean Bonus"),
    (f"bonus={__name__}:Config()", "Config.* Bonus"),
    ("bonus=Bonus(", r"bonus is 'Bonus\('"),
    ("bonus=Bonus(-1)", "beta is -1"),
    ("bonus=no_such_module.Bonus()", "no_such_module"),
    ("bonus=Bonus(beta=x)", "beta is 'x'"),
    ("bonus=Bonus(1, beta=2)", "beta is given twice"),
    ("bonus=Bonus(bta=2)", "bta; its fields are beta"),
    ("second.beta=3", "second is not in use"),
    ("count.beta=3", "count has no fields"),
    ("function=abs", "function cannot be set"),
    ("bonus.beta=-1", "beta is -1.0"),
    ("count=99", "count 99"),
  ],
)
def test_a_bad_assignment_is_refused_in_one_sentence(assignment, words):
  with pytest.raises(ValueError, match=words) as caught:
    overrides.apply(Config(), [assignment])
  assert "\n" not in str(caught.value)


def test_arguments_are_read_by_the_types_of_their_fields():
  config = presets.PRESETS["r2d2"].config_for("bsuite:catch/0")
  settings = (
    "bonus=NeverGiveUp(hidden_sizes=[64,32], rnd=false)",
    "target=Retrace(lambda_=1, double=no)",
    "exploration=EpsilonGreedy(Linear(1, 0.1, steps=1e3), of=Greedy(none))",
  )
  changed = overrides.apply(config, ["beta=0.3", *settings])
  assert changed.bonus.hidden_sizes == (64, 32) and changed.bonus.rnd is False
  assert changed.target.double is False and type(changed.target.lambda_) is float
  assert changed.exploration == exploration.EpsilonGreedy(
    exploration.Linear(1.0, 0.1, steps=1000), of=exploration.Greedy(None)
  )


def test_fields_that_constrain_each_other_are_set_together():
  for pair in (["count=99", "rate=1"], ["rate=1", "count=99"]):
    config = overrides.apply(Config(), pair)
    assert (config.count, config.rate) == (99, 1.0)


def test_no_field_is_set_twice():
  with pytest.raises(ValueError, match="gives count twice"):
    overrides.apply(Config(), ["count=1", "count=2"])
  with pytest.raises(ValueError, match="gives third and a field of it"):
    overrides.apply(Config(), ["third=none", "third.beta=2"])


def test_to_dict_survives_json():
  config = Config(limit=math.inf)
  content = json.loads(json.dumps(overrides.to_dict(config), allow_nan=False))
  assert content["class"] == "Config"
  assert content["bonus"] == {"class": "Bonus", "beta": 1.0}
  assert content["sizes"] == [50, 50]
  assert content["limit"] == "inf" and content["second"] is None
  assert content["function"] == "math:sqrt"
  assert set(content) == {"class", *(f.name for f in dataclasses.fields(Config))}
