# What CI and people run, from the root of a clone. The README's own commands do
# the same as `make install test`, without the site.
.PHONY: install test slow lint docs clean

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

# Runs what the pages show, and builds the site.
docs:
	.venv/bin/python -m pytest -m slow -n 3 --dist worksteal tests/docs/test_tutorials.py
	.venv/bin/zensical build --strict --clean

clean:
	rm -rf build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache
	find . -name __pycache__ -not -path './.venv/*' -prune -exec rm -r {} +
