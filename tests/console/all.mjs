// SPDX-License-Identifier: MIT
// Copyright the detent authors

// All tests of the console in one process, with one browser.
import { after } from "node:test";
import { quit } from "./browser.mjs";
import "./units.test.mjs";
import "./console.test.mjs";
import "./details.test.mjs";
import "./layout.test.mjs";
import "./flows.test.mjs";

after(quit);
