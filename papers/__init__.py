"""The figures of the papers: what each computes, how it is drawn, what it claims."""

from typing import TYPE_CHECKING

from explorax import lazy

if TYPE_CHECKING:
  from explorax.papers import reproducing

__getattr__ = lazy.modules(__name__, "reproducing")
