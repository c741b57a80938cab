"""
The compiled loop of the simulation.
"""
