"""
What a bucket adds to the ledger: outcomes, exceptions rows, final rows, overwritten changes.
"""
