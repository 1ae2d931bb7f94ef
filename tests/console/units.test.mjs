// SPDX-License-Identifier: MIT
// Copyright the detent authors

// The parts of the console that need no browser: exact JSON, the reader of events, small rules.
import assert from "node:assert/strict";
import test from "node:test";
import { load } from "./module.mjs";

const { parse, write } = await load("json.ts");
const { Splitter } = await load("sse.ts");
const { axisTimes } = await load("format.ts");

test("integers beyond 2^53 keep every digit, in both directions", () => {
    const text = '{"most":18446744073709551615,"least":-9223372036854775808,"small":7,"part":0.1,"list":[9007199254740993]}';
    const value = parse(text);
    assert.equal(value.most, 18446744073709551615n);
    assert.equal(value.least, -9223372036854775808n);
    assert.equal(value.small, 7);
    assert.equal(write(value), text);
});

test("marks that turn the direction of text are written as escapes", () => {
    const text = "\u202eexe.\u2066x";
    assert.equal(write({ text }), '{"text":"\\u202eexe.\\u2066x"}');
    assert.deepEqual(parse(write({ text })), { text });
});

test("what the exact reader reads is what the browser's reader reads", () => {
    const long = "0.12345678901234567890";
    for (const text of [`[${long}]`, `{"a":{"b":[1,2,{"c":null}]},"d":"1234567890123456","e":true,"f":[]}`, `[ 1e3 , -2.5 , "\\u00e9\\n\\"1234567890123456" , {} ]`, `{"__proto__x":1234567890123456}`])
        assert.deepEqual(parse(text), JSON.parse(text));
});

test("what is not JSON is refused, also with long numbers", () => {
    const long = "1234567890123456789";
    for (const text of [`[${long}`, `[${long},]`, `{"a":${long}`, `{a:${long}}`, `0${long}`, `[${long}] x`, `"\n${long}"`, `${long}.`, `[${"[".repeat(500)}${long}`])
        assert.throws(() => parse(text), SyntaxError);
});

test("events arrive however the stream is cut", () => {
    const text = ': hello\n\nid: 7\nevent: log\ndata: {"a":1}\n\nevent: task\r\ndata: x\r\ndata: y\r\n\r\ndata: lost';
    for (let size = 1; size <= text.length; size++) {
        const splitter = new Splitter();
        const all = [];
        for (let at = 0; at < text.length; at += size) all.push(...splitter.push(text.slice(at, at + size)));
        assert.deepEqual(all, [{ event: "log", data: '{"a":1}', id: "7" }, { event: "task", data: "x\ny", id: null }]);
    }
});

test("the colour of a state is what its spec says, else what its name means, and never one of these by chance", async () => {
    const { coloursOf } = await load("colours.ts");
    const GREEN = [2, 7, 8], ORANGE = [1, 9], RED = [5, 10], GREY = [4, 11];
    const of = (name, health = null, final = false) => coloursOf([{ name, final, health }]).get(name);
    assert.ok(GREEN.includes(of("well")) && ORANGE.includes(of("degraded")) && RED.includes(of("payment_failed")));
    assert.ok(RED.includes(of("well", "bad")) && GREEN.includes(of("payment_failed", "good")));
    assert.ok(ORANGE.includes(of("zzz", "warning")) && GREY.includes(of("zzz", "neutral")));
    assert.ok(![...GREEN, ...ORANGE, ...RED, ...GREY].includes(of("zzz")));
    assert.ok(GREY.includes(of("zzz", null, true)));
});

test("the times below a curve differ: with seconds where minutes are too coarse", () => {
    const from = Date.UTC(2026, 10, 17, 19, 49) / 1000;
    const every = (step) => axisTimes([0, 1, 2, 3].map((i) => from + i * step));
    for (const step of [5, 30, 60, 3600]) assert.equal(new Set(every(step)).size, 4, `${step} s: ${every(step)}`);
    assert.match(every(30)[1], /:30$/);
    assert.match(every(60)[1], /^\d\d:50$/);
});
