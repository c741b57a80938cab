"""
What breaks: the shortest schedule for every resolver, format and anomaly. Computes docs/zoo.md.
"""
