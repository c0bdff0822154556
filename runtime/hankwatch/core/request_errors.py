"""What HTTP requests come to that are not answered as they are; drawn in the tree of ``core.errors``."""

from hankwatch.core.errors import HankwatchError


class ServerRefused(HankwatchError):
    """A server that was asked refuses; code, message and hint are its own."""

    code = "server-refused"
    exit_code = 2

    def __init__(self, status: int, code: str, message: str, hint: str | None) -> None:
        self.status = status
        self.server_code = code
        super().__init__(f"the server refuses ({code}): {message}")
        self.hint = hint


class RequestRefused(HankwatchError):
    """An HTTP request that is not answered as it is."""

    code = "request-refused"

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.hint = hint


class Unauthenticated(RequestRefused):
    """Nobody knows who makes the request."""

    code = "unauthenticated"


class ScopeMissing(RequestRefused):
    """The token, or whoever it stands for, is not for this."""

    code = "scope-missing"


class CrossSite(RequestRefused):
    """A page of another site makes the request, through somebody's browser."""

    code = "cross-site"


class SecretInAddress(RequestRefused):
    """A token in an address, where logs and histories keep it."""

    code = "secret-in-address"

    def __init__(self, name: str) -> None:
        super().__init__(f"{name!r} has no place in an address", hint="send it as `Authorization: Bearer TOKEN`")


class WrongProtocolVersion(RequestRefused):
    """A request that is meant for another version of the protocol, or says none."""

    code = "protocol-version"

    def __init__(self, header: str, wanted: str, given: str | None) -> None:
        said = "is missing" if given is None else f"is {given!r}"
        super().__init__(f"the header {header} {said}", hint=f"send `{header}: {wanted}`")


class TooManyStreams(RequestRefused):
    """As many live streams are open as may be."""

    code = "too-many-streams"

    def __init__(self, limit: int) -> None:
        self.limit = limit
        super().__init__(f"{limit} streams are open, more are not served", hint="close one, or try again later")


class TooManyTrials(RequestRefused):
    """As many sentinel configs are being tried, or wait to be, as may be."""

    code = "too-many-trials"

    def __init__(self, limit: int) -> None:
        self.limit = limit
        super().__init__(f"{limit} trials are waiting, more are not taken", hint="try again in a few seconds")
