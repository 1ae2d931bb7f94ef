// SPDX-License-Identifier: MIT
// Copyright the detent authors

// Requests to the API: one function that asks, errors as values of one class.
import { parse, write } from "./json";
import { signOut, token } from "./session";

export class Failure extends Error {
    constructor(
        readonly status: number,
        readonly code: string,
        text: string,
    ) {
        super(text);
    }
}

export type Query = Record<string, string | number | boolean | null | undefined>;

/** Joins segments into a path, each escaped. */
export function path(...segments: (string | number)[]): string {
    return segments.map((segment) => "/" + encodeURIComponent(segment)).join("");
}

export function query(values: Query): string {
    const all = new URLSearchParams();
    for (const [name, value] of Object.entries(values))
        if (value !== undefined && value !== null && value !== "") all.set(name, String(value));
    const text = all.toString();
    return text && "?" + text;
}

/** Opens a response with the token; a refused token ends the session. */
export async function open(target: string, init: RequestInit = {}): Promise<Response> {
    const used = token.value;
    const headers = new Headers(init.headers);
    if (used) headers.set("authorization", "Bearer " + used);
    const response = await fetch("/v1" + target, { ...init, headers, cache: "no-store" });
    if (response.ok) return response;
    const failure = await failureOf(response);
    if (response.status === 401 && token.value === used) signOut(failure.message);
    throw failure;
}

async function failureOf(response: Response): Promise<Failure> {
    try {
        const { error } = (await response.json()) as { error: { code: string; text: string } };
        return new Failure(response.status, error.code, error.text);
    } catch (problem) {
        // Who gave up on the answer has not read the reason; another request does.
        if (problem instanceof DOMException && problem.name === "AbortError") throw problem;
        return new Failure(response.status, "FAILED", `The daemon answered ${response.status}.`);
    }
}

export async function get<T>(target: string, init?: RequestInit): Promise<T> {
    const response = await open(target, init);
    return parse(await response.text()) as T;
}

/** Posts JSON. */
export async function post<T>(target: string, body: unknown, key?: string): Promise<T> {
    const headers: Record<string, string> = { "content-type": "application/json" };
    if (key) headers["idempotency-key"] = key;
    const response = await open(target, { method: "POST", headers, body: write(body) });
    return parse(await response.text()) as T;
}

/**
 * Posts what must happen once. Each body has a key of its own, and keeps it until an answer says
 * what became of it: who sends the same again after a lost answer does not do it twice.
 */
export class Once {
    private readonly open = new Map<string, string>();

    async post<T>(target: string, body: unknown, makeKey = newKey): Promise<T> {
        const draft = target + " " + write(body);
        const key = this.open.get(draft) ?? makeKey();
        this.open.set(draft, key);
        try {
            const answer = await post<T>(target, body, key);
            this.open.delete(draft);
            return answer;
        } catch (failure) {
            // What is refused has not happened; of all else nobody knows.
            if (failure instanceof Failure && failure.status < 500) this.open.delete(draft);
            throw failure;
        }
    }
}

function newKey(): string {
    const bytes = crypto.getRandomValues(new Uint8Array(12));
    return "console-" + Array.from(bytes, (b) => b.toString(16).padStart(2, "0")).join("");
}

/** What went wrong, in words. */
export function words(error: unknown): string {
    if (error instanceof Failure) return error.message;
    return "The daemon does not answer.";
}
