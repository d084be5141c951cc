"""Static page at `/` if the web page is not built: how to build it, how to call the API, where to read on."""

from __future__ import annotations

from html import escape

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from recto.api.docs_page import STYLE, content_policy
from recto.api.route import CHAT

# Plain text: a request that is edited or sent twice needs no new id.
CURL = f"""\
curl -N http://127.0.0.1:8787{CHAT} \\
  -H "Authorization: Bearer TOKEN" -H "Content-Type: application/json" \\
  -d '{{"message": "I need career advice."}}'"""
# The token after the # never leaves the browser. A token with characters that are special to a shell is not shown,
# because a stranger may have made the link.
SCRIPT = """\
const line = document.getElementById("line"), token = new URLSearchParams(location.hash.slice(1)).get("token");
const put = (old, now) => { line.textContent = line.textContent.replace(old, () => now); };
put("http://127.0.0.1:8787", location.origin);
if (token) history.replaceState(null, "", location.pathname);
if (/^[\\w.~+=-]{16,}$/.test(token || "")) {
  put("TOKEN", token);
  document.getElementById("token").textContent = "Your token is in it already; it is no longer in the address above.";
}"""
PAGE = f"""\
<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>Recto</title><style>{STYLE}</style></head><body><h1>Recto</h1>
<p>An agent server. It keeps every conversation in a log that is never edited, and for each model call sets a fresh page
from it, with a manifest that says of every part why it is there. It speaks AG-UI.</p>
<p>Its web page would be here, and is not built: run <code>make web</code> where the server comes from, then load this
again.</p>
<h2>Ask it</h2><pre id="line">{escape(CURL)}</pre>
<p id="token">TOKEN is printed where the server was started, and kept in the file <code>token</code> of its data folder,
<code>recto-data</code> by default. Where API keys or JWTs are set, it is one of these.</p>
<h2>Read on</h2>
<p><a href="/docs">The API, with examples</a>, and as <a href="/openapi.json">OpenAPI</a>: they need no token.</p>
<script>{SCRIPT}</script></body></html>
"""


async def get_home(_request: Request) -> Response:
    """Serve the page that replaces the web page."""
    return HTMLResponse(PAGE, headers={"content-security-policy": content_policy(script=SCRIPT)})
