"""Networks: Haiku modules, and the pure functions that agents use them by."""

from explorax.networks.ensemble import (
  SharedTorsoParams,
  from_haiku,
  lift,
  with_prior,
  with_shared_torso,
)
from explorax.networks.ensemble_mlp import EnsembleMLP, make_ensemble_mlp
from explorax.networks.frozen import freeze
from explorax.networks.inputs import Inputs, make_inputs
from explorax.networks.rnd import make_rnd_networks
from explorax.networks.types import (
  Network,
  PriorQNetworks,
  QNetworks,
  RNDNetworks,
)

__all__ = [
  "EnsembleMLP",
  "Inputs",
  "Network",
  "PriorQNetworks",
  "QNetworks",
  "RNDNetworks",
  "SharedTorsoParams",
  "freeze",
  "from_haiku",
  "lift",
  "make_ensemble_mlp",
  "make_inputs",
  "make_rnd_networks",
  "with_prior",
  "with_shared_torso",
]
