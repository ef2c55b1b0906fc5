"""Each check of the book is a test: `pytest docs`."""

pytest_plugins = ["archcards.evidence.testing", "archcards.plugin.testing"]
