# What CI and people run, from the root of a clone. The README's own commands do
# the same as `make install test`, without the site.
.PHONY: install test slow lint site pages docs clean

install:
	[ -x .venv/bin/python ] || python3 -m venv .venv
	.ci/install -q -c constraints.txt -e '.[test,docs]'

test:
	.venv/bin/python -m pytest

slow:
	.venv/bin/python -m pytest -m slow

lint:
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .
	.venv/bin/lint-imports
	.venv/bin/mypy

# Explorers of published models, which the site shows as they are.
EXPLORERS := $(addprefix docs/live/,donut.html stripes.html sprites.html)
docs/live/donut.html: MODELS := paper/donut paper/low_rank
docs/live/stripes.html: MODELS := paper/stripes paper/stripes_and_bumps
docs/live/sprites.html: MODELS := sprites/cnn/montero_range sprites/acting/montero_range
$(EXPLORERS):
	mkdir -p $(@D)
	.venv/bin/python -c 'import sys, tfcomp; \
	  first, *others = map(tfcomp.load_published, sys.argv[2:]); \
	  first.explore(*others).write(sys.argv[1])' $@ $(MODELS)

# Builds the site with them.
site: $(EXPLORERS)
	.venv/bin/zensical build --strict --clean

# Runs what the pages show.
pages:
	.venv/bin/python -m pytest -m slow -n 2 --dist worksteal tests/docs/test_tutorials.py

# The same, and builds the site without explorers.
docs: pages
	.venv/bin/zensical build --strict --clean

clean:
	rm -rf docs/live build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache
	find . -name __pycache__ -not -path './.venv/*' -prune -exec rm -r {} +
