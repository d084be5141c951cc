"""What the model of these tests says, and what it was sent."""

from recto.testing.model_server import Answer, Call
from tests.api.scripted_server import Scripted, page_messages


def script(server: Scripted, *answers: Answer) -> None:
    """Give these answers next, in order."""
    server.answers.extend(answers)


def call(name: str, arguments: str, id: str = "call_0") -> Call:
    """Return a call. Models without ids all give `call_0`."""
    return Call(name=name, arguments=arguments, id=id)


# A reply that breaks off behind a whole call of a client's tool.
LOST_ANSWER = Answer(text="partial", calls=(call("paint", '{"colour": "lost"}'),), fault=("overloaded", "no more"))


def model_page(server: Scripted) -> list[str]:
    """Return the newest page as roles and texts, without system prompt and reminders."""
    rows = [row for row in page_messages(server.model.requests[-1]) if row["role"] != "system"]
    words = [str(row["content"]).rsplit("\n\n", 1)[-1] for row in rows]
    return [f"{row['role']}: {content}" for row, content in zip(rows, words, strict=True)]
