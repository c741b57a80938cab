"""
What a run every night tells other programs: figures for Prometheus, and conditions on them.
"""
