"""Networks: Haiku modules, and the pure functions that agents use them by."""

from explorax.networks.duelling import DuellingHead, PlainHead
from explorax.networks.embedding import (
  EmbeddingNetworks,
  EmbeddingParams,
  make_embedding_networks,
)
from explorax.networks.ensemble import (
  SharedTorsoParams,
  from_haiku,
  lift,
  with_prior,
  with_shared_torso,
)
from explorax.networks.ensemble_mlp import EnsembleMLP, make_ensemble_mlp
from explorax.networks.frozen import freeze
from explorax.networks.heads import HeadNetworks, HeadParams, make_head_networks
from explorax.networks.inputs import Inputs, make_inputs, visible_spec
from explorax.networks.lstm import LSTM
from explorax.networks.noisy import NoisyLinear
from explorax.networks.recurrent import (
  SequenceQNetworks,
  StepInputs,
  make_sequence_q_networks,
  with_sequence_prior,
)
from explorax.networks.rnd import make_rnd_networks
from explorax.networks.torsos import TORSOS, make_torso, resolve_torso
from explorax.networks.types import (
  Network,
  PriorQNetworks,
  QNetworks,
  RNDNetworks,
)

__all__ = [
  "LSTM",
  "TORSOS",
  "DuellingHead",
  "EmbeddingNetworks",
  "EmbeddingParams",
  "EnsembleMLP",
  "HeadNetworks",
  "HeadParams",
  "Inputs",
  "Network",
  "NoisyLinear",
  "PlainHead",
  "PriorQNetworks",
  "QNetworks",
  "RNDNetworks",
  "SequenceQNetworks",
  "SharedTorsoParams",
  "StepInputs",
  "freeze",
  "from_haiku",
  "lift",
  "make_embedding_networks",
  "make_ensemble_mlp",
  "make_head_networks",
  "make_inputs",
  "make_rnd_networks",
  "make_sequence_q_networks",
  "make_torso",
  "resolve_torso",
  "visible_spec",
  "with_prior",
  "with_sequence_prior",
  "with_shared_torso",
]
