/** Build of the page into the Python package. A strict content security policy requires that nothing is inline. */

import { defineConfig } from "vitest/config";

export default defineConfig({
  base: "./",
  build: {
    outDir: "../src/recto/web",
    emptyOutDir: true,
    // The policy of the page allows neither inline scripts nor data URLs of code.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    target: "es2022",
    // Browsers support light-dark() colors since 2024.
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
    // Limits for a busy machine.
    testTimeout: 30_000,
    expect: { poll: { timeout: 10_000 } },
  },
});
