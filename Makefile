# A front for plain commands; the README lists them. Nothing here is needed beside
# Python 3.11 or newer with venv, git and make.
.POSIX:
.SUFFIXES:
.PHONY: help site test faults same notebooks mutants browser oracles serve bench lock clean
PY = .venv/bin/python
BROWSER = tests/browser

help:
	@echo 'make site     set up, build and prove the site (in site/)'
	@echo 'make test     the same, then every test that needs neither a browser nor an oracle package'
	@echo 'make faults   build a site for each of the faults that no site may have'
	@echo 'make same     build the site in two unlike surroundings and compare every byte'
	@echo 'make notebooks  run every notebook of the built site with the wheel that it serves'
	@echo 'make mutants  break the code in a sample of places and count what the tests and chapters notice'
	@echo 'make browser  every page of the built site in Chromium, which has to be installed'
	@echo 'make oracles  compare mechanisms and ledger with what other packages compute'
	@echo 'make serve    set up and serve the site while you write'
	@echo 'make bench    measure speed and size, as ratios'
	@echo 'make lock     resolve and hash the requirements anew'
	@echo 'make clean    remove what the commands above made'

site:
	@tools/install.sh requirements.txt
	@tools/runtime.sh
	@$(PY) -m archcards build

test: site
	@tools/install.sh requirements-test.txt
	@$(PY) -m pytest

faults: site
	@tools/install.sh requirements-test.txt
	@$(PY) -m pytest tests/faults/test_alone.py --alone -n auto -q

same: site
	@$(PY) tools/same.py

notebooks: site
	@$(PY) tests/slow/notebooks.py

mutants: site
	@tools/install.sh requirements-test.txt
	@$(PY) tools/mutants.py $(MUTANTS)

browser: site
	@tools/install.sh requirements-test.txt requirements-browser.txt
	@$(PY) -m pytest -n auto --dist worksteal $(BROWSER) || { \
	    echo 'what failed beside other pages is read once more, alone, and has to pass'; \
	    $(PY) -m pytest --last-failed --last-failed-no-failures none $(BROWSER); }

oracles:
	@tools/oracles.sh

serve:
	@tools/install.sh requirements.txt
	@$(PY) -m archcards serve

bench:
	@tools/install.sh requirements.txt
	@$(PY) benchmarks/run.py

# uv resolves for every supported Python at once; it is fetched into a folder of its own.
lock:
	@python3 -m venv .venv-lock && .venv-lock/bin/python -m pip install --quiet uv
	@.venv-lock/bin/python tools/lock.py $(LOCK)

clean:
	rm -rf site .site-* .cache node_modules .venv .venv-lock .venv-oracles .pytest_cache .hypothesis
