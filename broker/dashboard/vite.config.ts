// SPDX-License-Identifier: Apache-2.0
import react from "@vitejs/plugin-react";
import { defineConfig } from "vitest/config";

// `npm run dev` shows the sources with the data of this broker.
const broker = process.env.BWB_URL ?? "http://127.0.0.1:7410";

export default defineConfig({
  plugins: [react()],
  server: {
    // The broker compares Origin with Host before it believes a cookie, so both must stay what the browser sent.
    proxy: { "/v1": { target: broker, changeOrigin: false } },
  },
  build: {
    outDir: "dist",
    target: "es2022",
    assetsInlineLimit: 0, // the Content-Security-Policy allows no data: URLs
    modulePreload: { polyfill: false },
    reportCompressedSize: false, // `npm run size` counts, and fails
  },
  test: {
    include: ["src/**/*.test.ts"],
    environment: "node",
    css: true, // tokens.test.ts reads it
    // What is tested is pure, but for the cache, which its test clears: a process for each file would take five times as long.
    isolate: false,
    pool: "threads",
  },
});
