"""Real HTTP service with an OpenAPI file that records its requests."""

import asyncio
import threading
from collections.abc import Generator
from contextlib import contextmanager

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route

from recto.conversation.json import Json
from recto.testing.process import free_port
from tests.files.heads import PNG

FILE = """\
openapi: 3.0.3
info: {title: Shop, version: 1.0.0}
security: [{key: []}]
components:
  securitySchemes:
    key: {type: apiKey, in: header, name: X-Key}
    login: {type: http, scheme: basic}
  parameters:
    verbose: {name: verbose, in: query, schema: {type: boolean}}
  schemas:
    Item:
      type: object
      required: [name]
      properties:
        name: {type: string, maxLength: 20}
        price: {type: number, minimum: 0, exclusiveMinimum: true, nullable: true}
        parent: {$ref: '#/components/schemas/Item'}
paths:
  /items/{id}:
    parameters:
      - {name: id, in: path, required: true, schema: {type: string}}
    get:
      operationId: getItem
      summary: Get an item.
      description: One of the shop's.
      parameters:
        - {$ref: '#/components/parameters/verbose'}
        - {name: tags, in: query, schema: {type: array, items: {type: string}}}
        - {name: X-Trace, in: header, schema: {type: string}}
      responses:
        200: {description: ok}
  /items:
    post:
      operationId: add.item
      security: [{login: []}]
      requestBody:
        required: true
        content: {application/json: {schema: {$ref: '#/components/schemas/Item'}}}
      responses: {201: {description: made}}
  /lists:
    put:
      requestBody:
        required: true
        content: {application/json: {schema: {type: array, items: {type: integer}}}}
      responses: {200: {description: ok}}
  /form:
    post:
      operationId: sendForm
      requestBody:
        content: {application/x-www-form-urlencoded: {schema: {type: object, properties: {a: {type: string}}}}}
      responses: {200: {description: ok}}
  /picture: {get: {operationId: picture, responses: {200: {description: ok}}}}
  /slow: {get: {operationId: slow, responses: {200: {description: ok}}}}
  /huge: {get: {operationId: huge, responses: {200: {description: ok}}}}
  /away: {get: {operationId: away, responses: {200: {description: ok}}}}
  /upload:
    post:
      operationId: upload
      requestBody: {content: {application/pdf: {schema: {type: string}}}}
      responses: {200: {description: ok}}
"""
KEY = "the-key-of-the-shop"


class Shop:
    """Address and recorded requests of the service."""

    def __init__(self) -> None:
        self.url = ""
        self.asked: list[dict[str, Json]] = []

    async def answer(self, request: Request) -> Response:
        body = (await request.body()).decode()
        headers = {name: value for name, value in request.headers.items() if name in VISIBLE_HEADERS}
        self.asked.append(
            {"method": request.method, "path": request.scope["raw_path"].decode(), "body": body, **headers}
        )
        self.asked[-1]["query"] = request.url.query
        match request.url.path:
            case "/v1/picture":
                return Response(PNG, media_type="image/png")
            case "/v1/slow":
                await asyncio.Event().wait()
                return Response()
            case "/v1/huge":
                return PlainTextResponse("x" * 100_000)
            case "/v1/away":
                return RedirectResponse("http://127.0.0.1:1/elsewhere")
            case path if path.startswith("/v1/items/") and request.headers.get("x-key") != KEY:
                return JSONResponse({"error": f"wrong key {request.headers.get('x-key')}"}, 403)
            case _:
                return JSONResponse({"ok": True})


VISIBLE_HEADERS = ("x-key", "authorization", "x-trace", "content-type", "host")


@contextmanager
def open_shop() -> Generator[Shop]:
    """Run the service inside the context."""
    shop = Shop()
    app = Starlette(routes=[Route("/{path:path}", shop.answer, methods=["GET", "POST", "PUT"])])
    server = uvicorn.Server(
        uvicorn.Config(app, host="127.0.0.1", port=free_port(), log_level="error", ws="none", lifespan="off")
    )
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        thread.join(0.01)
    shop.url = f"http://127.0.0.1:{server.config.port}/v1"
    try:
        yield shop
    finally:
        server.should_exit = True
        server.force_exit = True
        thread.join(5)
