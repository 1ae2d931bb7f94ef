// SPDX-License-Identifier: MIT
// Copyright the detent authors

// How the console is bundled: few files with hashed names, nothing inlined (the page's policy
// allows no inline script or style), GraphViz in a chunk of its own that is loaded when needed.
import { defineConfig } from "vite";

export default defineConfig({
    base: "/",
    esbuild: { jsx: "automatic", jsxImportSource: "preact", legalComments: "none", charset: "utf8" },
    build: {
        target: "es2021",
        outDir: "dist",
        assetsInlineLimit: 0,
        modulePreload: { polyfill: false },
        chunkSizeWarningLimit: 2000,
        reportCompressedSize: false,
    },
});
