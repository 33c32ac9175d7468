"""What goes wrong in a run for reasons that its user can mend."""


class SetUpError(Exception):
  """The run cannot start as it was asked for; the message is one sentence."""


class OutputError(Exception):
  """The run's directory cannot be used or written to; the message is one sentence."""
