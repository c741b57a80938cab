"""The compiled loops of a comparison."""
