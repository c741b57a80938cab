"""
What binlogs do not show: states of rows before the log, places of epochs that left no trace, moments of judging.

Hypotheses are tried with the reference engine; those are kept whose effect the binlogs show. docs/inference.md explains
why none is missed.
"""
