// The browser of the tests, out of its package into node_modules, once: with the libraries and fonts it brings along.
import { mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { BROWSER } from "./browser_files.mjs";

rmSync(BROWSER, { recursive: true, force: true });
mkdirSync(BROWSER, { recursive: true });
// Its package unpacks into the folder for temporary files.
process.env.TMPDIR = BROWSER;
const { default: chromium, inflate } = await import("@sparticuz/chromium");
await chromium.executablePath();
await inflate(join(import.meta.dirname, "node_modules/@sparticuz/chromium/bin/al2023.tar.br"));
