// SPDX-License-Identifier: MIT
// Copyright the detent authors

// JSON whose integers stay exact: beyond 2^53 they are bigints, in both directions.

const LONG_NUMBER = /[0-9]{16}/;
const NUMBER = /-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?/y;
const STRING = /"(?:[^"\\\u0000-\u001f]|\\.)*"/y;
const SPACE = /[ \t\n\r]*/y;
const WORDS: [string, unknown][] = [["true", true], ["false", false], ["null", null]];

/** Reads with the browser's parser, unless a number might be too long for it. */
export function parse(text: string): unknown {
    return LONG_NUMBER.test(text) ? new Reader(text).document() : JSON.parse(text);
}

/** A descending reader; depth is bounded by what the server writes and by `deepest`. */
class Reader {
    private at = 0;

    constructor(private readonly text: string) {}

    document(): unknown {
        const value = this.value(0);
        if (this.at !== this.text.length) throw this.error();
        return value;
    }

    private error(): SyntaxError {
        return new SyntaxError(`not JSON at ${this.at}`);
    }

    private match(pattern: RegExp): string {
        pattern.lastIndex = this.at;
        const found = pattern.exec(this.text);
        if (!found) throw this.error();
        this.at += found[0].length;
        return found[0];
    }

    private takes(word: string): boolean {
        if (!this.text.startsWith(word, this.at)) return false;
        this.at += word.length;
        this.match(SPACE);
        return true;
    }

    private need(word: string): void {
        if (!this.takes(word)) throw this.error();
    }

    private value(depth: number): unknown {
        if (depth > 128) throw this.error();
        this.match(SPACE);
        if (this.takes("{")) return this.object(depth);
        if (this.takes("[")) return this.array(depth);
        for (const [word, value] of WORDS) if (this.takes(word)) return value;
        if (this.text[this.at] === '"') return this.string();
        const digits = this.match(NUMBER);
        this.match(SPACE);
        const number = Number(digits);
        return /^-?[0-9]+$/.test(digits) && !Number.isSafeInteger(number) ? BigInt(digits) : number;
    }

    private string(): string {
        const value = JSON.parse(this.match(STRING)) as string;
        this.match(SPACE);
        return value;
    }

    private object(depth: number): unknown {
        const members: [string, unknown][] = [];
        if (this.takes("}")) return {};
        do {
            this.match(SPACE);
            const name = this.string();
            this.need(":");
            members.push([name, this.value(depth + 1)]);
        } while (this.takes(","));
        this.need("}");
        return Object.fromEntries(members);
    }

    private array(depth: number): unknown {
        const items: unknown[] = [];
        if (this.takes("]")) return items;
        do items.push(this.value(depth + 1));
        while (this.takes(","));
        this.need("]");
        return items;
    }
}

/** Writes bigints as numbers; `indent` as in JSON.stringify. */
export function write(value: unknown, indent = 0, level = 0): string {
    const next = indent ? "\n" + " ".repeat(indent * (level + 1)) : "";
    const end = indent ? "\n" + " ".repeat(indent * level) : "";
    const colon = indent ? ": " : ":";
    if (typeof value === "bigint") return value.toString();
    if (Array.isArray(value)) {
        if (!value.length) return "[]";
        return "[" + value.map((v) => next + write(v, indent, level + 1)).join(",") + end + "]";
    }
    if (value !== null && typeof value === "object") {
        const members = Object.entries(value).filter(([, v]) => v !== undefined);
        if (!members.length) return "{}";
        const lines = members.map(
            ([k, v]) => next + JSON.stringify(k) + colon + write(v, indent, level + 1),
        );
        return "{" + lines.join(",") + end + "}";
    }
    return JSON.stringify(value)?.replace(TURNING, escaped) ?? "null";
}

/** Marks that turn the direction of what stands behind them: a payload could hide its end by one. */
const TURNING = /[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;

function escaped(letter: string): string {
    return "\\u" + letter.charCodeAt(0).toString(16).padStart(4, "0");
}
