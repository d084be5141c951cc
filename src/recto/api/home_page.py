"""What is at `/` where the web page is not built: what this is, how to have the page, how to ask without it, where to
read on. Static words: it tells nothing of this server.
"""

from __future__ import annotations

from html import escape

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from recto.api.docs_page import STYLE, content_policy
from recto.api.route import CHAT

# Words alone: whoever writes others into it, or sends it twice, has no id to change.
CURL = f"""\
curl -N http://127.0.0.1:8787{CHAT} \\
  -H "Authorization: Bearer TOKEN" -H "Content-Type: application/json" \\
  -d '{{"message": "I need career advice."}}'"""
# The token behind the # never leaves the browser. One that a shell could take for more than a word is not shown:
# whoever made the link might not be us.
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
    """What a browser is shown in place of the web page."""
    return HTMLResponse(PAGE, headers={"content-security-policy": content_policy(script=SCRIPT)})
