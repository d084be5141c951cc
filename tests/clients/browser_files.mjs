// Where the browser of the tests is, and how it is started.
import { join } from "node:path";
import { chromium } from "playwright-core";

export const BROWSER = join(import.meta.dirname, "node_modules", ".browser");
// Root may not use the sandbox, and the server is on loopback.
const FLAGS = ["--no-sandbox", "--no-zygote", "--disable-gpu", "--font-render-hinting=none"];

export function launch() {
  return chromium.launch({
    executablePath: process.env.CHROMIUM ?? join(BROWSER, "chromium"),
    args: FLAGS,
    env: { ...process.env, LD_LIBRARY_PATH: join(BROWSER, "al2023", "lib"), FONTCONFIG_PATH: join(BROWSER, "fonts") },
  });
}
