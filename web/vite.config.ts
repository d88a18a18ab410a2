// The bundle is served under any path prefix (a proxy, JupyterHub), so every address in it is relative.
import { defineConfig } from "vitest/config";

export default defineConfig({
  base: "./",
  oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
  build: { target: "es2023", assetsInlineLimit: 8192, modulePreload: { polyfill: false } },
  test: { environment: "node", include: ["src/**/*.test.ts", "src/**/*.test.tsx"] },
});
