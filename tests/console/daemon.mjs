// SPDX-License-Identifier: MIT
// Copyright the detent authors

// The live tests alone, for a real daemon.
import { after } from "node:test";
import { quit } from "./browser.mjs";
import "./live.test.mjs";

after(quit);
