"""Inputs that nobody meant, for every reader; `make fuzz` makes them as long as one likes."""
