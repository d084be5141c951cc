"""A client of the server, for Python programs: turns of a conversation, with tools, files and decisions of its own.

Written once, as coroutines that know no event loop: see `transports`. It speaks HTTP and knows nothing of the server.

- `server_address`: where the server is, and the credential for it
- `transports`: how requests go out: over blocking sockets, or on an event loop
- `exchange`: requests until they are answered, and events of a run, however often a connection is lost
- `sent_files`: files on their way to the server
- `local_tools`: functions of the program that the model may call
- `chat_turn`: a turn: what was asked, what is heard of it, and what this side does for it
- `chat_client`: `Client` and `AsyncClient`
"""

from recto.client.chat_client import AsyncClient, Client
from recto.client.chat_turn import Approval, AsyncChatTurn, CallToApprove, ChatTurn
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
