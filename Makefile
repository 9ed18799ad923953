# Two commands set everything up: `make demo` and `make test`. Each makes its own virtual environment first.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: demo test test-matrix campaign hostile papers docs dist lint format clean

$(READY): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[test]"
	touch $(READY)

demo: $(READY)
	$(BIN)/fenchel demo

test: $(READY)
	$(BIN)/python -m pytest -n 2 --dist worksteal

# Random problems, each certificate checked: make campaign N=10000 SEED=0; a violation names its own seed.
N ?= 10000
SEED ?= 0
campaign: $(READY)
	$(BIN)/python -m tests.campaign --problems $(N) --seed $(SEED) --jobs 2

# Damaged files, N for each reader, within limits of memory and time: make hostile N=20000
hostile: $(READY)
	$(BIN)/python tests/hostile.py $(N)

# The evaluation of the five papers, on the data that FENCHEL_DATA names: make papers ARGS="--only yu2011.fig2"; ARGS=--quick for two minutes.
papers: $(READY)
	OMP_NUM_THREADS=1 $(BIN)/python -m experiments $(ARGS)

# The suite once per row: other processors, one thread, another Python. Hours; ROWS=a,b and TESTS=files for less.
test-matrix: $(READY)
	$(BIN)/python .ci/matrix.py $(if $(ROWS),--rows $(ROWS)) $(if $(NEWEST),--newest $(NEWEST)) $(TESTS)

# The site, in site/; a warning is an error.
docs: $(READY)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[docs]"
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict

# Wheel and sdist, each installed into an empty environment and tried on the README's program.
dist: $(READY)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check build
	rm -rf dist && $(BIN)/python -m build --quiet
	$(BIN)/python .ci/dist.py dist/*

lint: $(READY)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

format: $(READY)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean:
	rm -rf $(VENV) site dist .venv-newest .matrix .numba_cache .pytest_cache .ruff_cache demo-output
