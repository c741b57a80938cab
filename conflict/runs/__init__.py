"""A run from its configuration to its result, with one engine."""
