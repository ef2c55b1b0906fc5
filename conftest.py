"""Each check of the book is a test: `pytest docs`."""

import signal

pytest_plugins = ["archcards.evidence.testing", "archcards.plugin.testing"]

# A shell that starts a command in the background has it ignore Ctrl-C, and its children inherit
# that: the tests that interrupt a build would interrupt nothing.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
