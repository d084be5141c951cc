// A server of the chat pages in the folder `pages`: it bundles them when it starts and listens on loopback.
import { createServer } from "node:http";
import { join } from "node:path";
import * as esbuild from "esbuild";
import { serve } from "./commands.mjs";

const files = new Map();
let server;

async function bundle() {
  const { outputFiles } = await esbuild.build({
    entryPoints: ["copilotkit.jsx", "assistant_ui.jsx"].map((name) => join(import.meta.dirname, "pages", name)),
    outdir: "/",
    bundle: true,
    write: false,
    jsx: "automatic",
    format: "esm",
    splitting: true,
    define: { "process.env.NODE_ENV": '"production"' },
    loader: { ".woff2": "empty", ".woff": "empty", ".ttf": "empty" },
    logLevel: "error",
  });
  for (const { path, contents } of outputFiles) files.set(path, contents);
}

function answer({ url }, reply) {
  const { pathname } = new URL(url, "http://localhost");
  const html = `<!doctype html><link rel="stylesheet" href="${pathname}.css"><body><div id="root"></div>
    <script type="module" src="${pathname}.js"></script>`;
  const types = { js: "text/javascript", css: "text/css" };
  const type = types[pathname.split(".").at(-1)];
  reply.writeHead(type && !files.has(pathname) ? 404 : 200, { "content-type": type ?? "text/html; charset=utf-8" });
  reply.end(type ? files.get(pathname) : html);
}

serve({
  async start({ port }) {
    await bundle();
    server = createServer(answer).listen(port, "127.0.0.1");
  },

  close: () => server?.close(),
});
