"""
More than two clusters in simulated time: the appliers are those of the reference engine.
"""
