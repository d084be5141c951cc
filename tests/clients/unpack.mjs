// The browser of the tests, out of its package into node_modules, once: with the libraries and fonts it brings along.
import { copyFileSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { BROWSER } from "./browser_files.mjs";

rmSync(BROWSER, { recursive: true, force: true });
mkdirSync(BROWSER, { recursive: true });
// Its package unpacks into the folder for temporary files.
process.env.TMPDIR = BROWSER;
const { default: chromium, inflate } = await import("@sparticuz/chromium");
await chromium.executablePath();
await inflate(join(import.meta.dirname, "node_modules/@sparticuz/chromium/bin/al2023.tar.br"));
// It looks for fonts where it was unpacked elsewhere, and ends where it finds none.
const fonts = join(BROWSER, "fonts");
// Chinese has to be drawn to be looked at.
const chinese = "SourceHanSansCN-Regular.otf";
copyFileSync(join(import.meta.dirname, "node_modules/source-han-sans-cn", chinese), join(fonts, chinese));
writeFileSync(
  join(fonts, "fonts.conf"),
  `<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig><dir>${fonts}</dir><cachedir>${join(BROWSER, "fonts-cache")}</cachedir></fontconfig>
`,
);
