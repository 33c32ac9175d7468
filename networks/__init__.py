"""Networks: Haiku modules, and the pure functions through which agents use them."""

from explorax.networks.embedding import (
  EmbeddingNetworks,
  EmbeddingParams,
  ForwardModel,
  make_embedding_networks,
  make_forward_model,
)
from explorax.networks.ensemble import Members, from_haiku, lift
from explorax.networks.epinet import Epinet, make_epinet
from explorax.networks.frozen import freeze
from explorax.networks.heads import DuellingHead, PlainHead
from explorax.networks.inputs import Inputs, make_inputs, visible_spec
from explorax.networks.lstm import LSTM
from explorax.networks.noisy import Noise, NoisyLinear
from explorax.networks.perceptrons import make_perceptrons
from explorax.networks.priors import with_prior
from explorax.networks.recurrent import (
  QNetworks,
  StepInputs,
  feed_forward,
  make_q_networks,
  make_trunk,
  side_by_side,
)
from explorax.networks.rnd import make_random_features, make_rnd_networks
from explorax.networks.torsos import TORSOS, make_torso, resolve_torso
from explorax.networks.types import Ensemble, EnsembleParams, Network, RNDNetworks

__all__ = [
  "LSTM",
  "TORSOS",
  "DuellingHead",
  "EmbeddingNetworks",
  "EmbeddingParams",
  "Ensemble",
  "EnsembleParams",
  "Epinet",
  "ForwardModel",
  "Inputs",
  "Members",
  "Network",
  "Noise",
  "NoisyLinear",
  "PlainHead",
  "QNetworks",
  "RNDNetworks",
  "StepInputs",
  "feed_forward",
  "freeze",
  "from_haiku",
  "lift",
  "make_embedding_networks",
  "make_epinet",
  "make_forward_model",
  "make_inputs",
  "make_perceptrons",
  "make_q_networks",
  "make_random_features",
  "make_rnd_networks",
  "make_torso",
  "make_trunk",
  "resolve_torso",
  "side_by_side",
  "visible_spec",
  "with_prior",
]
