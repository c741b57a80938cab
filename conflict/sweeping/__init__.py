"""A grid of simulations: what changes when latency, functions, formats, rates and outages do. docs/sweep.md."""
