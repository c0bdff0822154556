"""The journal, its readers, the bus and the stream that writes to them."""

from typing import TYPE_CHECKING

from hankwatch.core.lazy import lazy_names

if TYPE_CHECKING:
    from hankwatch.stream.bus import Bus, ListenerFailure, Mailbox, MailboxStatistics
    from hankwatch.stream.journal import Journal
    from hankwatch.stream.lock import Holder, OwnerLock, holder, lock_path
    from hankwatch.stream.reader import JournalReader
    from hankwatch.stream.repair import Repair
    from hankwatch.stream.stream import EventStream

__all__ = [
    "Bus",
    "EventStream",
    "Holder",
    "Journal",
    "JournalReader",
    "ListenerFailure",
    "Mailbox",
    "MailboxStatistics",
    "OwnerLock",
    "Repair",
    "holder",
    "lock_path",
]

if not TYPE_CHECKING:
    __getattr__ = lazy_names(
        __name__,
        {
            "Bus": "hankwatch.stream.bus",
            "EventStream": "hankwatch.stream.stream",
            "Holder": "hankwatch.stream.lock",
            "Journal": "hankwatch.stream.journal",
            "JournalReader": "hankwatch.stream.reader",
            "ListenerFailure": "hankwatch.stream.bus",
            "Mailbox": "hankwatch.stream.bus",
            "MailboxStatistics": "hankwatch.stream.bus",
            "OwnerLock": "hankwatch.stream.lock",
            "Repair": "hankwatch.stream.repair",
            "holder": "hankwatch.stream.lock",
            "lock_path": "hankwatch.stream.lock",
        },
    )
