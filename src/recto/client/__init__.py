"""The Python client of the server. Uses HTTP only and imports no server code.

The protocol is written once, as coroutines independent of an event loop; see `transports`.
"""

from recto.client.chat_client import Approval, AsyncChatTurn, AsyncClient, CallToApprove, ChatTurn, Client
from recto.client.exchange import Patience
from recto.errors import ClientError, FileRefused, RequestRefused, ServerUnreachable, TurnFailed

__all__ = [
    "Approval",
    "AsyncChatTurn",
    "AsyncClient",
    "CallToApprove",
    "ChatTurn",
    "Client",
    "ClientError",
    "FileRefused",
    "Patience",
    "RequestRefused",
    "ServerUnreachable",
    "TurnFailed",
]
