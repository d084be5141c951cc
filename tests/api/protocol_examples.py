"""Requests of the protocol's own document, byte for byte."""

import json
import re

from recto.conversation.json import Json

ADDRESS = "https://storage.example.com/agent-inputs/user-123/image.png?signature=xxx"
WEATHER: Json = {
    "name": "get_weather",
    "description": "获取指定城市的天气信息",
    "parameters": {
        "type": "object",
        "properties": {"city": {"type": "string", "description": "城市名称"}},
        "required": ["city"],
    },
}


def _request(run: str, content: Json, *tools: Json) -> str:
    thread = "550e8400-e29b-41d4-a716-446655440000"
    messages: Json = [{"id": "msg-001", "role": "user", "content": content}]
    head: dict[str, Json] = {"threadId": thread, "runId": run, "state": {}, "messages": messages}
    whole: dict[str, Json] = {**head, "tools": tools, "context": [], "forwardedProps": {}}
    text = json.dumps(whole, indent=2, ensure_ascii=False)
    return re.sub(r'\[\s+"city"\s+]', '["city"]', text)


TEXT = _request("run-001", "帮我查一下北京今天的天气")
PICTURE = _request(
    "run-002",
    [{"type": "text", "text": "这张图片里的内容是什么?"}, {"type": "binary", "mimeType": "image/png", "url": ADDRESS}],
)
TOOLS = _request("run-003", "北京天气怎么样?", WEATHER)
