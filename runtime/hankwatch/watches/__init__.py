"""Standing tripwires on something outside (spec watches)."""
