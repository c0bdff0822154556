import anyio
import pytest
from tests.support.streams import events, message

from hankwatch.core.errors import InfrastructureError
from hankwatch.events.envelope import Event
from hankwatch.stream import Bus, ListenerFailure, Mailbox


def ignore(_failure: ListenerFailure) -> None: ...


def test_listeners_are_called_in_the_order_they_subscribed() -> None:
    bus, calls = Bus(ignore), list[str]()
    for name in "abc":
        bus.subscribe(lambda _event, name=name: calls.append(name), name=name)  # type: ignore[misc]
    bus.publish(*events("x"))
    assert calls == ["a", "b", "c"]


def test_a_failing_listener_is_reported_and_the_others_see_every_event_in_order() -> None:
    failures: list[ListenerFailure] = []
    bus, before, after = Bus(failures.append), list[str](), list[str]()

    def fail(event: Event) -> None:
        raise ValueError(event.data["message"])

    bus.subscribe(lambda event: before.append(message(event)), name="before")
    bus.subscribe(fail, name="bad")
    bus.subscribe(fail, name="worse")
    bus.subscribe(lambda event: after.append(message(event)), name="after")
    for event in events("1", "2", "3"):
        bus.publish(event)
    assert before == after == ["1", "2", "3"]
    assert [(f.name, str(f.error)) for f in failures[:3]] == [("bad", "1"), ("worse", "1"), ("bad", "2")]
    assert len(failures) == 6


def test_an_infrastructure_failure_passes() -> None:
    def fail(_event: Event) -> None:
        raise InfrastructureError("disk")

    bus = Bus(ignore)
    bus.subscribe(fail, name="bad")
    with pytest.raises(InfrastructureError):
        bus.publish(*events("x"))


def test_an_unsubscribed_listener_hears_nothing_more_even_in_the_middle_of_a_delivery() -> None:
    bus, heard = Bus(ignore), list[str]()
    bus.subscribe(lambda _event: leave(), name="ends the next one")
    leave = bus.subscribe(lambda event: heard.append(message(event)), name="ended")
    bus.subscribe(lambda event: heard.append(message(event).upper()), name="third")
    bus.publish(*events("x"))
    assert heard == ["X"]


def test_who_subscribes_during_a_delivery_hears_the_next_event() -> None:
    bus, heard = Bus(ignore), list[str]()
    once = bus.subscribe(lambda _event: join(), name="joins another")

    def join() -> None:
        once()
        bus.subscribe(lambda event: heard.append(message(event)), name="new")

    for event in events("1", "2"):
        bus.publish(event)
    assert heard == ["2"]


async def test_a_mailbox_hands_over_in_order_and_counts() -> None:
    mailbox = Mailbox(3, accepts=lambda event: message(event) != "no")
    batch = events("a", "no", "b")
    for cursor, event in enumerate(batch, 1):
        event.cursor = cursor
        mailbox.offer(event)
    assert message(await anext(mailbox)) == "a"
    assert mailbox.cursor == 1
    statistics = mailbox.statistics()
    assert (statistics.capacity, statistics.waiting, statistics.filtered, statistics.delivered) == (3, 1, 1, 1)
    assert statistics.closed is None


async def test_what_is_filtered_out_takes_no_room() -> None:
    mailbox = Mailbox(1, accepts=lambda event: message(event) == "yes")
    for event in events(*["no"] * 1000, "yes"):
        mailbox.offer(event)
    assert message(await anext(mailbox)) == "yes"


async def test_a_full_mailbox_closes_and_says_where_to_resume() -> None:
    mailbox = Mailbox(2)
    for cursor, event in enumerate(events("a", "b", "c", "d", "e"), 10):
        event.cursor = cursor
        mailbox.offer(event)
        if cursor == 10:
            await anext(mailbox)
    assert [event async for event in mailbox] == []
    assert mailbox.cursor == 10
    assert mailbox.statistics().closed == "full"
    assert mailbox.statistics().waiting == 0


async def test_a_reader_waits_for_the_next_event() -> None:
    mailbox, got = Mailbox(2), list[str]()

    async def read() -> None:
        async for event in mailbox:
            got.append(message(event))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(read)
        for event in events("a", "b"):
            await anyio.wait_all_tasks_blocked()
            mailbox.offer(event)
        await anyio.wait_all_tasks_blocked()
        mailbox.close()
    assert got == ["a", "b"]
    assert mailbox.statistics().closed == "left"


async def test_a_closed_mailbox_stays_as_it_closed() -> None:
    mailbox = Mailbox(1)
    for event in events("a", "b"):
        mailbox.offer(event)
    mailbox.close()
    assert mailbox.statistics().closed == "full"
