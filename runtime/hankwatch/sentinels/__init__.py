"""Observers of a codon: what they wait for, how they gather, whom they ask, where they report.

Re-exports nothing: ``validate`` needs ``config`` and ``loader`` alone, and quickly.
"""
