"""
A grid of simulations over latency, functions, formats, rates and outages. Computes docs/sweep.md.
"""
