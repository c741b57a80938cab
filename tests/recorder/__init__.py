"""Records scenarios on clusters of its own: `python -m tests.recorder --ndb DIR SCENARIO... --out DIR`."""
