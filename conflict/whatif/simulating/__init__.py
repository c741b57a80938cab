"""
Clusters that replicate to each other: workloads, epochs, links and appliers in simulated time.
"""
