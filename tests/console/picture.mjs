// SPDX-License-Identifier: MIT
// Copyright the detent authors

// Only the picture of README.md; see scripts/pictures.
import { after } from "node:test";
import { quit } from "./browser.mjs";
import "./picture.test.mjs";

after(quit);
