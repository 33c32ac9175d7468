"""Who dies again and again is given up."""

from explorax.experiments.distributed import processes


def test_five_deaths_within_a_minute_are_too_many():
  now = [0.0]
  deaths = processes.Deaths(lambda: now[0])
  told = []
  for now[0] in (0.0, 50.0, 55.0, 58.0, 61.0, 62.0):
    told.append(deaths.add(did_something=True))
  # The first is more than a minute ago when the fifth comes.
  assert told == [*[""] * 5, "died 5 times within 60 s"]


def test_five_in_a_row_that_did_nothing_are_too_many_however_slowly_they_came():
  now = [0.0]
  deaths = processes.Deaths(lambda: now[0])
  told = []
  for hour, did in enumerate((False, False, True, False, False, False, False, False)):
    now[0] = 3600.0 * hour
    told.append(deaths.add(did_something=did))
  assert told == [*[""] * 7, "died 5 times before it did anything"]
