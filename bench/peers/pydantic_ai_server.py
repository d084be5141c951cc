"""Pydantic AI's AG-UI adapter behind uvicorn, as its documentation shows it. The argument is the model's url."""

import socket
import sys

import uvicorn
from pydantic_ai import Agent
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai.ui.ag_ui import AGUIAdapter
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

agent = Agent(OpenAIChatModel("fake", provider=OpenAIProvider(base_url=sys.argv[1], api_key="none")))


async def run(request: Request) -> Response:
    return await AGUIAdapter.dispatch_request(request, agent=agent)


def main() -> None:
    app = Starlette(routes=[Route("/", run, methods=["POST"])])
    listening = socket.create_server(("127.0.0.1", 0), backlog=2048)
    config = uvicorn.Config(app, log_level="warning", access_log=False, server_header=False, date_header=False)
    print(f"http://127.0.0.1:{listening.getsockname()[1]}", flush=True)
    uvicorn.Server(config).run(sockets=[listening])


if __name__ == "__main__":
    main()
