"""The earlier name of `explorax.experiments.report`; it goes with the next release."""

import sys

from explorax.experiments import report
from explorax.experiments.recording import console

if __name__ == "__main__":
  console.print_error("compare is now `python -m explorax.experiments.report`.")
  sys.exit(report.main())
