"""hankwatch: an event-stream sentinel runtime for supervised coding agents."""

__version__ = "0.1.0"
