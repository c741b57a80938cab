"""
What would have been: other functions and formats, simulations, grids of them, and the worst schedule.
"""
