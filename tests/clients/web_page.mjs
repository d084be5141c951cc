// A browser for the server's own page, on a leash: what a person does is written in the test, as a script of Playwright.
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { launch } from "./browser_files.mjs";
import { serve } from "./commands.mjs";

const AXE = join(import.meta.dirname, "node_modules", "axe-core", "axe.min.js");
const tabs = new Map();
const scripts = new Map();
let browser;

// A script is the body of an async function of these; the same one is read once.
function compiled(script) {
  if (!scripts.has(script)) {
    const make = Object.getPrototypeOf(async () => {}).constructor;
    scripts.set(script, new make("page", "context", "args", "axe", script));
  }
  return scripts.get(script);
}

async function axe(page, where = "html") {
  // The page's own policy lets no script in but its own; the debugger may.
  const session = await page.context().newCDPSession(page);
  await session.send("Runtime.evaluate", { expression: await readFile(AXE, "utf8") });
  await session.detach();
  const { violations } = await page.evaluate((at) => window.axe.run(at), where);
  return violations.map(({ id, nodes }) => `${id}: ${nodes.map((node) => node.html).join(" | ").slice(0, 600)}`);
}

serve({
  async start() {
    browser = await launch();
    return { version: browser.version() };
  },

  async open({ name, url, beside, options }) {
    // A tab beside another shares what the browser keeps; else it is a browser of its own.
    const context = beside ? tabs.get(beside).context : await browser.newContext(options);
    if (!beside) await context.grantPermissions(["clipboard-read", "clipboard-write"]);
    const page = await context.newPage();
    page.setDefaultTimeout(15_000);
    const said = [];
    const asked = [];
    page.on("console", (message) => said.push(`${message.type()}: ${message.text()}`));
    page.on("pageerror", (error) => said.push(`error: ${error}`));
    page.on("request", (request) => asked.push(request.url()));
    tabs.set(name, { context, page, said, asked });
    await page.goto(url);
  },

  async run({ name, script, args }) {
    const { context, page } = tabs.get(name);
    return { value: (await compiled(script)(page, context, args ?? {}, axe)) ?? null };
  },

  said: ({ name }) => ({ said: tabs.get(name).said, asked: tabs.get(name).asked }),

  async shut({ name }) {
    const { context, page } = tabs.get(name);
    tabs.delete(name);
    await page.close();
    if (!context.pages().length) await context.close();
  },

  close: () => browser?.close(),
});
