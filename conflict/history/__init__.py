"""
The model of what happened: epochs, transactions, and when each cluster applied which epoch of the other.
"""
