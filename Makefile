# Everything runs in .venv, which every target creates from the versions and hashes in
# requirements/. The requirements are Python 3.11, make and a package index.
#
#   PYTHON=/path/to/python3.11 make install     use another interpreter

PYTHON ?= python3.11
VENV := .venv
BIN := $(VENV)/bin
LOCK := requirements/py311-reverb.txt
LOCK_NEWEST := requirements/newest.txt
BOOTSTRAP := requirements/bootstrap.txt
# Tests spend most of their time compiling small programs, which need no optimisation.
UNOPTIMISED := XLA_FLAGS='--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true'
INSTALLED := $(VENV)/.installed
PARTS := losses exploration networks environments agents experiments papers

# The user's pip settings must not install packages outside of .venv.
export PIP_USER := 0
export PIP_DISABLE_PIP_VERSION_CHECK := 1
# Without bytecode, each process compiles four thousand modules at its start.
export PYTHONDONTWRITEBYTECODE :=

.DELETE_ON_ERROR:
.PHONY: help install demo test test-core lint types docs results scorecard bench bench-gpu gpu-speed \
  gpu-deep-sea gpu-other soak lock clean

help:
	@echo 'make install    set up .venv, with Reverb and all that the other targets need'
	@echo 'make demo       watch TDU solve Deep Sea'
	@echo 'make test       all tests, and the coverage of losses and exploration'
	@echo 'make test-core  functions, reference updates, replay, presets and verdicts, in minutes'
	@echo 'make lint       format, lint and types'
	@echo 'make types      only types'
	@echo 'make docs       the documentation as web pages, in build/docs'
	@echo 'make results    tables and figures of docs/, README'"'"'s too, from the kept results'
	@echo 'make scorecard  a smoke version of the table of all methods; FULL=1: the table'
	@echo 'make bench      speed and memory, side by side with the peers'
	@echo 'make bench-gpu  on a GPU or TPU: speed, and Deep Sea; MINUTES=8, then resumes'
	@echo 'make soak       a distributed run of 20 minutes whose processes are killed at random'
	@echo 'make lock       resolve the versions in requirements/ again'
	@echo 'make clean      remove all generated files except results/ and runs/'

install: $(INSTALLED)

# uv is several times faster than pip, and shows its progress on a terminal, but does not
# read pip's settings: if they set an index, or if uv fails, pip installs the same files.
$(INSTALLED): pyproject.toml $(LOCK) $(BOOTSTRAP)
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11))' 2> /dev/null \
	  || { echo "explorax: Python 3.11 is needed, because Reverb has no wheels for" \
	    "other versions, but '$(PYTHON)' is not Python 3.11: install it, or set" \
	    "PYTHON=/path/to/python3.11." >&2; exit 1; }
	@test "$$(uname -sm)" = 'Linux x86_64' \
	  || { echo "explorax: the locked versions are for Linux on x86-64, and this is" \
	    "$$(uname -sm): run 'pip install -e .[all,dev]' for all but Reverb." >&2; \
	    exit 1; }
	@echo "Setting up $(VENV): $$(grep -c == $(LOCK)) packages, 3.8 GB, some minutes ..."
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install -qq --require-hashes -r $(BOOTSTRAP)
	@$(BIN)/python -m pip config list | grep -E '\.(index-url|no-index|proxy)=' > /dev/null \
	  || $(BIN)/uv pip sync $$(test -t 2 || echo --quiet) --compile-bytecode \
	    --python $(BIN)/python --no-build-isolation --require-hashes $(LOCK) \
	  || echo 'uv failed; using pip.'
	@$(BIN)/python -m pip install -qq --no-deps --no-build-isolation --require-hashes \
	  -r $(LOCK)
	@PIP_REQUIRE_HASHES=0 $(BIN)/python -m pip install -qq --no-deps --no-index \
	  --no-build-isolation --editable .
	@ln -sfn $(addprefix ../../,$(PARTS)) src/explorax/
	@echo '$(CURDIR)/src' > $$($(BIN)/python -c 'import site; print(*site.getsitepackages())')/explorax.pth
	@touch $@

demo: $(INSTALLED)
	$(BIN)/python -m explorax demo

test: $(INSTALLED)
	$(UNOPTIMISED) $(BIN)/pytest --cov -n 2 --dist=worksteal

test-core: $(INSTALLED)
	$(UNOPTIMISED) $(BIN)/pytest -m core -n 2 --dist=worksteal

lint: $(INSTALLED)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(MAKE) --no-print-directory types

types: $(INSTALLED)
	$(BIN)/mypy
	$(BIN)/mypy --strict --config-file= tests/user_project.py
	$(BIN)/basedpyright tests/user_project.py

docs: $(INSTALLED)
	@rm -rf build/docs
	$(BIN)/sphinx-build -W --keep-going -q -j auto -c docs . build/docs
	$(BIN)/python docs/check_site.py build/docs
	@echo "Open $(CURDIR)/build/docs/index.html"

# Nothing is computed again: figures are drawn from the results that are kept.
results: $(INSTALLED)
	$(BIN)/python benchmarks/bench.py --page
	$(BIN)/python -m explorax.papers.reproduce --workers=1 --results=results/figures \
	  --figure=$$(ls results/figures | sed 's#_#/#; s#\.npz$$##' | paste -sd,) \
	  --output=docs/figures --pages=docs
	rm -rf build/bsuite
	for name in $$(ls results/bsuite | sed 's#\.csv\.gz$$##'); do \
	  $(BIN)/python docs/bsuite_results.py unpack results/bsuite/$$name.csv.gz \
	    build/bsuite/raw/$$name || exit 1; \
	  $(BIN)/python -m explorax.experiments.report build/bsuite/raw/$$name \
	    --output=build/bsuite/$$name || exit 1; \
	  for file in $$(ls docs/bsuite/$$name); do \
	    cp build/bsuite/$$name/$$file docs/bsuite/$$name/ || exit 1; \
	  done; \
	done

# The full version takes 16.5 core hours, and the same command resumes it.
scorecard: $(INSTALLED)
	$(BIN)/python -m explorax.papers.reproduce --figure=scorecard \
	  $(if $(FULL),,--quick) --output=results/scorecard

bench: $(INSTALLED)
	$(BIN)/python benchmarks/bench.py

# On a GPU or TPU, the most important rows first; each is kept as soon as it is measured.
MINUTES ?= 8
bench-gpu: $(INSTALLED)
	timeout --foreground $(MINUTES)m $(MAKE) -k --no-print-directory gpu-speed \
	  gpu-deep-sea gpu-other || { code=$$?; [ $$code = 124 ] || exit $$code; \
	  echo 'The time is over: the same command measures the rest.'; }

gpu-speed: $(INSTALLED)
	$(BIN)/python benchmarks/bench.py --only=device,seeds,updates,structure --rounds=1

# All seeds are in one program. The last command has all sizes of bsuite.
ON_GPU := $(BIN)/python -m explorax.papers.reproduce --output=results/gpu
SCALING := $(ON_GPU) --figure=tdu/scaling --set agent=tdu,bootstrapped_dqn \
  --set stochastic=false --set own_mapping=false --set num_seeds=20 --set seeds_per_task=20
STOCHASTIC := $(ON_GPU) --figure=tdu/stochastic --set num_seeds=50 --set seeds_per_task=50
gpu-deep-sea: $(INSTALLED)
	$(SCALING) --set size=20
	$(SCALING) --set size=10,20,30,40,50
	$(STOCHASTIC) --set size=20
	$(SCALING)
	$(STOCHASTIC) --set size=20,30,40

# In Atari, and with CUDA graphs, whose list is that of JAX 0.11.
GRAPHS := FUSION,CUBLAS,CUBLASLT,CUSTOM_CALL,CUDNN,CONDITIONAL,WHILE,DYNAMIC_SLICE_FUSION
gpu-other: $(INSTALLED)
	$(BIN)/python benchmarks/bench.py --only=games --rounds=1
	XLA_FLAGS=--xla_gpu_enable_command_buffer=$(GRAPHS) \
	  $(BIN)/python benchmarks/bench.py --only=seeds --rounds=1

soak: $(INSTALLED)
	$(BIN)/python benchmarks/soak.py --output=results/soak-$$(date +%Y%m%d-%H%M%S)

# With an explicit index, no setting of this machine gets into the files. The lock of the
# newest versions is resolved for Python 3.12 and also used with newer ones.
UV_COMPILE := pip compile --quiet --no-config --generate-hashes --upgrade \
  --default-index https://pypi.org/simple --python-platform x86_64-unknown-linux-gnu \
  --custom-compile-command 'make lock'
LOCKED := pyproject.toml requirements/bootstrap.in -c $(BOOTSTRAP) --extra all --extra dev

lock: $(INSTALLED)
	$(BIN)/uv $(UV_COMPILE) --python-version 3.11 requirements/bootstrap.in -o $(BOOTSTRAP)
	$(BIN)/uv $(UV_COMPILE) --python-version 3.11 $(LOCKED) --extra docs -o $(LOCK)
	$(BIN)/uv $(UV_COMPILE) --python-version 3.12 $(LOCKED) -o $(LOCK_NEWEST)

clean:
	rm -rf $(VENV) .venv-newest $(addprefix src/explorax/,$(PARTS)) build dist \
	  explorax.egg-info .coverage .hypothesis .cache .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
