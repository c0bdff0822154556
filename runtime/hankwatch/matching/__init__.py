"""Matching: conditions, regular expressions, sequences, and the index of all triggers."""

from hankwatch.matching.triggers import EventTrigger, Match, SequenceTrigger, Trigger, TriggerIndex

__all__ = ["EventTrigger", "Match", "SequenceTrigger", "Trigger", "TriggerIndex"]
