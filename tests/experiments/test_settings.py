import dataclasses
import json
import math
from typing import Annotated, Any, Literal

import pytest

from explorax import exploration, ranges
from explorax.experiments import presets, settings

pytestmark = pytest.mark.core


@dataclasses.dataclass(frozen=True)
class Bonus(ranges.Checked):
  beta: ranges.NonNegativeFloat = 1.0


@dataclasses.dataclass(frozen=True)
class Config(ranges.Checked):
  name: str = "a"
  flag: bool = False
  count: ranges.PositiveInt = 1  # In rows.
  # From a paper;
  # a share.
  rate: float = 0.5
  limit: Annotated[float, ranges.Range(gt=0)] | None = None
  sizes: tuple[int, ...] = (50, 50)
  words: tuple[str, ...] = ()
  pair: tuple[int, float] = (1, 2.0)
  kind: Literal["mean", "max"] = "mean"
  bonus: Bonus = dataclasses.field(default_factory=Bonus)
  second: Bonus | None = None
  third: Bonus | None = dataclasses.field(default_factory=Bonus)
  factor: float | Bonus = 1.0
  rule: exploration.Rule = dataclasses.field(default_factory=exploration.Greedy)
  function: Any = math.sqrt

  def __post_init__(self):
    super().__post_init__()
    if self.count > self.rate * 100:
      raise ValueError(f"count {self.count} is too high for rate {self.rate}.")


@pytest.mark.parametrize(
  ("assignment", "field", "value"),
  [
    ("name=b", "name", "b"),
    ("flag=true", "flag", True),
    ("count=1e1", "count", 10),
    ("limit=0.25", "limit", 0.25),
    ("sizes=64,32,16", "sizes", (64, 32, 16)),
    ("sizes=[64]", "sizes", (64,)),
    ("sizes=", "sizes", ()),
    ("words=Bonus, x=1,a@b-c", "words", ("Bonus", "x=1", "a@b-c")),
    ("words=('a', \"b\")", "words", ("a", "b")),
    ("pair=-3,-1", "pair", (-3, -1.0)),
    ("bonus.beta=0.1", "bonus", Bonus(0.1)),
    ("third=none", "third", None),
    (f"bonus={__name__}.Bonus(beta=2)", "bonus", Bonus(2)),
    (f"factor={__name__}.Bonus", "factor", Bonus()),
    ("rule=Boltzmann(1)", "rule", exploration.Boltzmann(1.0)),
  ],
)
def test_reads_a_value_by_its_type(assignment, field, value):
  config = settings.apply(Config(), [assignment])
  assert getattr(config, field) == value
  assert type(getattr(config, field)) is type(value)
  assert dataclasses.replace(config, **{field: getattr(Config(), field)}) == Config()
  spelled = f"{field}={settings.spell(value)}"
  assert settings.apply(Config(), [spelled]) == config


@pytest.mark.parametrize(
  ("assignment", "words"),
  [
    ("count=1.5", "count is 1.5; it must be a whole number"),
    ("rate=Greedy()", r"rate is Greedy\(.*; it must be a number"),
    ("cuont=3", "cuont. Did you mean count"),
    ("beta=3", r"Did you mean bonus.beta or third.beta\? The settings are: name, fl"),
    ("bonus=3", "bonus is 3; it must be a Bonus"),
    ("rule=Gredy(3)", "no Gredy. Did you mean Greedy"),
    (f"bonus={__name__}.Bonus(", "a Bonus"),
    (f"bonus={__name__}.Bonus(-1)", "Bonus.beta is -1"),
    ("count.beta=3", "count is 1, which"),
    ("count=99", "count 99"),
  ],
)
def test_a_bad_assignment_is_refused_in_one_sentence(assignment, words):
  with pytest.raises(ValueError, match=words) as caught:
    settings.apply(Config(), [assignment])
  assert "\n" not in str(caught.value)


def test_a_file_imports_nothing():
  text = f"bonus={__name__}.Bonus(2)"
  with pytest.raises(ValueError, match="not ours"):
    settings.apply(Config(), [], [text])
  recorded = ["rule=Greedy(first=1)", "count=2"]
  config = settings.apply(Config(), [text], recorded)
  assert config == Config(rule=exploration.Greedy(first=1), count=2, bonus=Bonus(2))


def test_fields_that_constrain_each_other_are_set_together():
  for pair in (["count=99", "rate=1"], ["rate=1", "count=99"]):
    config = settings.apply(Config(), pair)
    assert (config.count, config.rate) == (99, 1.0)


def test_of_two_changes_of_a_field_the_later_counts():
  for changes, third in (
    (["third.beta=2", "third=none"], None),
    (["third.beta=2", f"third={__name__}.Bonus()"], Bonus()),
    ([f"third={__name__}.Bonus(3)", "third.beta=2"], Bonus(2)),
  ):
    assert settings.apply(Config(), changes) == Config(third=third)


def test_the_listing_has_every_setting_with_its_comment():
  lines = settings.listing(Config()).splitlines()
  assert lines[lines.index("count=1") + 1] == "    In rows."
  assert lines[lines.index("rate=0.5") + 1] == "    From a paper; a share."
  assert "third.beta=1.0" in lines and "second=None" in lines


def test_to_json_survives_json():
  config = Config(rate=math.inf)
  content = json.loads(json.dumps(settings.to_json(config), allow_nan=False))
  assert content["class"] == "Config"
  assert content["bonus"] == {"class": "Bonus", "beta": 1.0}
  assert content["sizes"] == [50, 50]
  assert content["rate"] == "inf" and content["second"] is None
  assert content["function"] == "math:sqrt"
  assert set(content) == {"class", *(f.name for f in dataclasses.fields(Config))}


def test_every_preset_is_what_its_spelled_settings_are():
  for preset in presets.PRESETS.values():
    texts = [
      f"{name}={settings.spell(x)}" for name, x, _ in settings.walk(preset.config)
    ]
    assert settings.apply(preset.config, texts) == preset.config
