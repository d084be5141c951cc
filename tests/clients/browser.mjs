// A browser and the pages of this folder, on a leash: pages are bundled when it starts and served on loopback.
import { createServer } from "node:http";
import { join } from "node:path";
import * as esbuild from "esbuild";
import { launch } from "./browser_files.mjs";
import { serve } from "./commands.mjs";

const files = new Map();
const pages = new Map();
let browser, server;

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
    browser = await launch();
    return { version: browser.version() };
  },

  async open({ name, url }) {
    const page = await browser.newPage({ viewport: { width: 900, height: 900 } });
    page.setDefaultTimeout(15_000);
    const said = [];
    page.on("console", (message) => said.push(`${message.type()}: ${message.text()}`));
    page.on("pageerror", (error) => said.push(`error: ${error}`));
    pages.set(name, { page, said });
    await page.goto(url);
  },

  fill: ({ name, where, text }) => pages.get(name).page.locator(where).fill(text),
  press: ({ name, where, key }) => pages.get(name).page.locator(where).press(key),
  click: ({ name, where }) => pages.get(name).page.locator(where).click(),
  hover: ({ name, where }) => pages.get(name).page.locator(where).hover(),
  upload: ({ name, where, paths }) => pages.get(name).page.locator(where).setInputFiles(paths),
  wait: ({ name, where, state }) => pages.get(name).page.locator(where).waitFor({ state }),
  texts: async ({ name, where }) => ({ texts: await pages.get(name).page.locator(where).allInnerTexts() }),
  evaluate: async ({ name, script }) => ({ value: await pages.get(name).page.evaluate(script) }),
  reload: async ({ name }) => void (await pages.get(name).page.reload()),
  screenshot: async ({ name, path }) => void (await pages.get(name).page.screenshot({ path })),
  said: ({ name }) => ({ said: pages.get(name).said }),
  shut: ({ name }) => pages.get(name).page.close(),

  async close() {
    await browser?.close();
    server?.close();
  },
});
