"""What an agent writes on its two channels, and the repetition in it."""

from collections.abc import Iterable
from dataclasses import dataclass

from hankwatch.watchdog.policy import WatchdogPolicy
from hankwatch.watchdog.segments import Segment, Segmenter
from hankwatch.watchdog.sentences import Evidence, Repetition, Sentences
from hankwatch.watchdog.signals import Channel


@dataclass(frozen=True, slots=True)
class Said:
    """Something that was said too often, and where."""

    channel: Channel
    repetition: Repetition


class Speech:
    """Both channels, each with its own segmenter and its own counts."""

    __slots__ = ("_segmenters", "_sentences")

    def __init__(self, policy: WatchdogPolicy) -> None:
        self._segmenters: dict[Channel, Segmenter] = {
            "thinking": Segmenter(fences=False),
            "text": Segmenter(fences=True),
        }
        self._sentences: dict[Channel, Sentences] = {"thinking": Sentences(policy), "text": Sentences(policy)}

    def feed(self, channel: Channel, text: str) -> Said | None:
        """Take a delta; the first repetition that it completes. What follows that is not looked at."""
        segments = self._segmenters[channel].feed(text)
        return self._take(channel, segments) if segments else None

    def flush(self, *, end: bool) -> Said | None:
        """Take what is not finished on both channels, at a tool call or at the ``end`` of the stream."""
        for channel, segmenter in self._segmenters.items():
            said = self._take(channel, segmenter.flush(end=end))
            if said:
                return said
        return None

    def clear(self) -> None:
        """Forget what was said, and begin a new stream."""
        self.restore((Evidence(), Evidence()))

    def evidence(self) -> tuple[Evidence, Evidence]:
        """What was said so far, as a value to ``restore``."""
        return self._sentences["thinking"].evidence, self._sentences["text"].evidence

    def restore(self, evidence: tuple[Evidence, Evidence]) -> None:
        """Go back to an earlier ``evidence``, at the beginning of a stream."""
        self._sentences["thinking"].evidence, self._sentences["text"].evidence = evidence
        for segmenter in self._segmenters.values():
            segmenter.reset()

    def _take(self, channel: Channel, segments: Iterable[Segment]) -> Said | None:
        for segment in segments:
            found = self._sentences[channel].take(segment)
            if found:
                return Said(channel, found)
        return None
