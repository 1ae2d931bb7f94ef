// SPDX-License-Identifier: MIT
// Copyright the detent authors

// A module of the console as it is, in this process.
import { createRequire } from "node:module";
import { join, resolve } from "node:path";

const web = resolve(process.env.DETENT_WEB ?? ".");
const { buildSync } = createRequire(join(web, "package.json"))("esbuild");

export async function load(name) {
    const entryPoints = [join(web, "src", name)];
    const { outputFiles } = buildSync({ entryPoints, bundle: true, format: "esm", write: false, platform: "node" });
    return import("data:text/javascript;base64," + Buffer.from(outputFiles[0].contents).toString("base64"));
}
