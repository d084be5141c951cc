"""Error responses of the gateway (X3) in the form of the caller's SDK.

SDKs decide by the status whether to retry, and by `Retry-After` when.
"""

from __future__ import annotations

from starlette.datastructures import Headers
from starlette.responses import Response

from recto.api.route import JSON_MEDIA, PROBLEM_MEDIA
from recto.conversation.json import dump, load_object
from recto.models.choose import SDKS
from recto.models.wire_protocol import ProviderSdk

# The prefix of all gateway paths.
GATEWAY = "/v1/"
# Headers that an error response keeps.
OF_REFUSALS = ("retry-after", "allow", "connection")


def sdk_at(path: str, headers: Headers) -> ProviderSdk | None:
    """Return the SDK of a request, by its path, else by a header; None outside the gateway's paths."""
    if not path.startswith(GATEWAY):
        return None
    if exact := next((sdk for sdk in SDKS if path in (sdk.path, *sdk.also)), None):
        return exact
    first, *others = SDKS
    return next((sdk for sdk in others if path.startswith(sdk.path) or sdk.own_header in headers), first)


def in_form_asked_for(answer: Response, path: str, headers: Headers) -> Response:
    """Return the response, with a problem on a gateway path converted to the SDK's form."""
    sdk = sdk_at(path, headers) if answer.media_type == PROBLEM_MEDIA else None
    if sdk is None:
        return answer
    told = load_object(bytes(answer.body)) or {}
    refusal = sdk_refusal(sdk, answer.status_code, str(told.get("code")), str(told.get("detail")))
    refusal.headers.update({name: answer.headers[name] for name in OF_REFUSALS if name in answer.headers})
    return refusal


def sdk_refusal(sdk: ProviderSdk, status: int, code: str, detail: str, *, retry: float | None = None) -> Response:
    """Return an error response. `retry` is the time to wait in seconds."""
    headers = {"retry-after": str(max(1, round(retry)))} if retry is not None else None
    return Response(dump(sdk.error(status, code, detail)), status, headers, media_type=JSON_MEDIA)


def sdk_stream_fault(sdk: ProviderSdk, status: int, code: str, detail: str) -> bytes:
    """Return the error as the last event of a stream."""
    return sdk.fault_event % dump(sdk.error(status, code, detail))
