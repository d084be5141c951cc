/** How the page is built: into the Python package, with nothing inline, so that a strict policy holds. */

import { defineConfig } from "vitest/config";

export default defineConfig({
  base: "./",
  build: {
    outDir: "../src/recto/web",
    emptyOutDir: true,
    // Everything has a file of its own: the page's policy allows neither inline scripts nor data urls of code.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    target: "es2022",
    // Colours are written as light-dark(), which browsers know since 2024.
    cssTarget: ["chrome123", "firefox120", "safari17.5"],
    reportCompressedSize: false,
  },
  server: {
    host: "127.0.0.1",
    proxy: { "/api": "http://127.0.0.1:8787" },
  },
  test: {
    environment: "happy-dom",
    include: ["tests/**/*.test.{ts,tsx}"],
    // Limits for a busy machine; nothing waits longer than it has to.
    testTimeout: 30_000,
    expect: { poll: { timeout: 10_000 } },
  },
});
