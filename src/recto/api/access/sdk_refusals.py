"""Refusals of the gateway (X3) in the form that the SDK which asks expects.

SDKs tell by the status whether to try again, and by `Retry-After` when.
"""

from __future__ import annotations

from starlette.datastructures import Headers
from starlette.responses import Response

from recto.api.route import JSON_MEDIA
from recto.conversation.json import dump
from recto.models.choose import SDKS
from recto.models.wire_protocol import ProviderSdk

# What all paths of the gateway begin with.
GATEWAY = "/v1/"


def sdk_at(path: str, headers: Headers) -> ProviderSdk | None:
    """Which SDK asks, by where it asks and what only it sends; None: it is none of the gateway's paths."""
    if not path.startswith(GATEWAY):
        return None
    first, *others = SDKS
    return next((sdk for sdk in others if path.startswith(sdk.path) or sdk.own_header in headers), first)


def sdk_refusal(sdk: ProviderSdk, status: int, code: str, detail: str, *, retry: float | None = None) -> Response:
    """A refusal. `retry` are the seconds after which to try again."""
    headers = {"retry-after": str(max(1, round(retry)))} if retry is not None else None
    return Response(dump(sdk.error(status, code, detail)), status, headers, media_type=JSON_MEDIA)


def sdk_stream_fault(sdk: ProviderSdk, status: int, code: str, detail: str) -> bytes:
    """The same as the last event of a stream that breaks off."""
    return sdk.fault_event % dump(sdk.error(status, code, detail))
