"""hank.json: its models, the rules between its fields, everything it names, and the prompts made of it."""

from hankwatch.hank.load import LoadedHank, load_hank
from hankwatch.hank.model import Codon, Hank, Loop

__all__ = ["Codon", "Hank", "LoadedHank", "Loop", "load_hank"]
