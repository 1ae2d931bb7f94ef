// SPDX-License-Identifier: MIT
// Copyright the detent authors

// The tests against the program itself: one daemon, one browser.
import { after } from "node:test";
import { quit } from "./browser.mjs";
import "./snippets.test.mjs";
import "./daemon.test.mjs";
import "./picture.test.mjs";

after(quit);
