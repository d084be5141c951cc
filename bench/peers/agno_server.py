"""Agno's AG-UI interface behind uvicorn, with its SQLite database. The argument is the model's url."""

import socket
import sys

import uvicorn
from agno.agent import Agent
from agno.db.sqlite import AsyncSqliteDb
from agno.models.openai.like import OpenAILike
from agno.os import AgentOS
from agno.os.interfaces.agui import AGUI


def main() -> None:
    model = OpenAILike(id="fake", base_url=sys.argv[1], api_key="none")
    agent = Agent(name="bench", model=model, db=AsyncSqliteDb(db_file="agno.db"), telemetry=False)
    app = AgentOS(agents=[agent], interfaces=[AGUI(agent=agent)], telemetry=False).get_app()
    listening = socket.create_server(("127.0.0.1", 0), backlog=2048)
    config = uvicorn.Config(app, log_level="warning", access_log=False, server_header=False, date_header=False)
    print(f"http://127.0.0.1:{listening.getsockname()[1]}", flush=True)
    uvicorn.Server(config).run(sockets=[listening])


if __name__ == "__main__":
    main()
