"""Files that people write: JSON with positions, faults with what would be right, portable paths, layers."""

from hankwatch.config.diagnostics import Diagnostic, Diagnostics, Severity

__all__ = ["Diagnostic", "Diagnostics", "Severity"]
