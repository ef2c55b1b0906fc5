"""`python -m archcards` is the `archcards` command."""

import sys

from archcards.cli import main

sys.exit(main())
