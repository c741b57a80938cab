"""
Channels that move to other SQL nodes: where they go on.
"""
