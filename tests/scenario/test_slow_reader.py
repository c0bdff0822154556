"""A reader slower than the run: its mailbox stays small, and nothing is lost by that."""

from pathlib import Path

from tests.support.streams import Bench, info, message

from hankwatch.stream import Journal, JournalReader, Mailbox


async def test_a_reader_that_fell_behind_resumes_from_the_journal(tmp_path: Path) -> None:
    bench = Bench(Journal.open(tmp_path / "events.jsonl"))
    mailbox = Mailbox(100)
    leave = bench.stream.subscribe(mailbox.offer, name="slow client")
    got: list[str] = []
    most_waiting = 0
    for number in range(5000):
        bench.stream.emit(info(str(number)))
        most_waiting = max(most_waiting, mailbox.statistics().waiting)
        if number % 10 == 0 and mailbox.statistics().closed is None:
            got.append(message(await anext(mailbox)))
    leave()
    assert most_waiting <= 100
    assert mailbox.statistics().closed == "full"
    assert [event async for event in mailbox] == []

    got += [message(event) for event in JournalReader(tmp_path / "events.jsonl").read(mailbox.cursor)]
    assert got == [str(number) for number in range(5000)]
    bench.stream.close()
