"""MCP server of the older protocol: handshake only, other lines between messages, notices on its own."""

import json
import sys
from pathlib import Path

tools: list[dict[str, object]] = [{"name": "hello", "description": "Say hello.", "inputSchema": {"type": "object"}}]
WRONG: dict[str, object] = {
    "name": "wrong",
    "description": "No object.",
    "inputSchema": {"type": "object", "properties": {"a b": {}}},
}


def mark(word: str) -> None:
    """Log a message if a log file is configured."""
    for path in sys.argv[1:]:
        Path(path).write_text(word, encoding="utf-8")


def say(message: dict[str, object]) -> None:
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


def answer(method: str, params: dict[str, object]) -> dict[str, object] | None:
    if method == "initialize":
        info = {"name": "old", "version": "1"}
        capabilities = {"tools": {"listChanged": True}}
        return {"protocolVersion": "2025-03-26", "capabilities": capabilities, "serverInfo": info}
    if method == "tools/list":
        return {"tools": [*tools, WRONG]}
    if method == "tools/call" and params["name"] == "hello":
        return {"content": [{"type": "text", "text": "hello"}]}
    if method == "tools/call" and params["name"] == "more":
        return {"content": [{"type": "text", "text": "more"}]}
    return None


for line in sys.stdin:
    print("this is no message", flush=True)
    print('{"jsonrpc": "2.0", "neither": 1}', flush=True)
    message = json.loads(line)
    if "id" not in message or message.get("params", {}).get("arguments") == {"answer": "never"}:
        mark(message["method"])
        continue
    result = answer(message["method"], message.get("params", {}))
    if result is None:
        say({"id": message["id"], "error": {"code": -32601, "message": f"no {message['method']}"}})
    else:
        say({"id": message["id"], "result": result})
    if message["method"] == "tools/call":
        tools.append({"name": "more", "description": "More.", "inputSchema": {"type": "object"}})
        say({"method": "notifications/tools/list_changed"})
