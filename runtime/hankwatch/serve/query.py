"""What addresses say of the events that a client wants."""

from typing import Annotated

from fastapi import Query

from hankwatch.serve.events import LAST_CURSOR

Cursor = Annotated[int, Query(ge=0, le=LAST_CURSOR, description="Only what stands behind this cursor.")]
Types = Annotated[
    list[str],
    Query(alias="type", max_length=60, description="Only these types; repeat it, or separate them by commas."),
]
Codon = Annotated[str | None, Query(max_length=300, description="Only events of this codon, by its runtime id.")]
"""As a form sends it: empty where nothing was written into it."""
OneCodon = Annotated[str | None, Query(min_length=1, max_length=300, description="Only events of this codon.")]
