"""The journal, its readers, the bus and the stream that writes to them."""

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
