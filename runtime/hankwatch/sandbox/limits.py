"""What one job may take (spec sentinels 6); read by the worker, its engines and its owner."""

JOB_LIMIT_S = 2.0
"""Wall time of one job, from when the worker has read it."""

MEMORY_LIMIT_MB = 512
"""Address space of the worker; the bare one has 30 MB."""

MAX_OUTPUT_BYTES = 32 * 1024 * 1024
"""Longest rendered prompt, in UTF-8; twice the 16 MiB of events a batch may hold."""
