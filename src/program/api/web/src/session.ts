// SPDX-License-Identifier: MIT
// Copyright the detent authors

// The signed-in user: one token for all tabs of this browser that show this daemon.
//
//   link or form --> token --+--> sessionStorage of the tab: a reload finds it
//                            +--> a new tab asks the open ones for it over a BroadcastChannel
//
// Nothing outlives the last tab. The page runs no script but its own (its policy forbids inline
// and foreign scripts), so that nothing else on this origin reads the storage or the channel. A
// tab whose user wants it otherwise keeps the token in a variable only, and lends it to nobody.
//
// `detent up` prints a link with a one-time code after #. The code leaves the address bar before
// anything else happens, so that it is in no history, no screenshot and no referrer.
import { signal } from "@preact/signals";

const KEY = "detent.token";
/** How long a new tab waits for an answer of the others; they answer within a few milliseconds. */
const ASK_MS = 200;

export const token = signal<string | null>(stored());
/** Why the sign-in view is shown again, if it is. */
export const refusal = signal<string | null>(null);

/** The rights of the token; null: not known yet. */
export const scopes = signal<string[] | null>(null);

/** False only if it is known that the token lacks this right. */
export function may(scope: string): boolean {
    return scopes.value === null || scopes.value.includes(scope) || scopes.value.includes("admin");
}

type Message = { ask: true } | { token: string } | { left: string };

const channel = typeof BroadcastChannel === "undefined" ? null : new BroadcastChannel("detent.session");
let shared = token.value !== null;

function stored(): string | null {
    try {
        return sessionStorage.getItem(KEY);
    } catch {
        return null;
    }
}

function store(value: string | null): void {
    try {
        if (value === null) sessionStorage.removeItem(KEY);
        else sessionStorage.setItem(KEY, value);
    } catch {
        // A browser that forbids storage still has the variable.
    }
}

function say(message: Message): void {
    channel?.postMessage(message);
}

/** `share`: a reload and other tabs of this browser find the token. */
export function signIn(value: string, share: boolean): void {
    refusal.value = null;
    token.value = value;
    shared = share;
    store(share ? value : null);
}

/** Answers other tabs, and follows them when they sign out. */
function listen(): void {
    channel?.addEventListener("message", ({ data }: MessageEvent<Message>) => {
        if ("ask" in data && shared && token.value !== null) say({ token: token.value });
        else if ("left" in data && data.left === token.value) signOut("Signed out in another tab.");
    });
}

/** Asks the other tabs for their token; false when nobody has one. */
function borrow(): Promise<boolean> {
    return new Promise((resolve) => {
        if (channel === null) return resolve(false);
        const done = (found: boolean) => {
            clearTimeout(timer);
            channel.removeEventListener("message", heard);
            resolve(found);
        };
        const heard = ({ data }: MessageEvent<Message>) => {
            if (!("token" in data)) return;
            signIn(data.token, true);
            done(true);
        };
        const timer = setTimeout(() => done(false), ASK_MS);
        channel.addEventListener("message", heard);
        say({ ask: true });
    });
}

/** Signs in by the link, by what the tab kept, or by another tab; else the view asks for a token. */
export async function start(): Promise<void> {
    const code = takeCode();
    if (code !== null) await redeem(code);
    if (token.value === null) await borrow();
    listen();
}

/** Forgets the token; `why` is shown on the sign-in view. */
export function signOut(why: string | null): void {
    store(null);
    refusal.value = why;
    token.value = null;
}

/** Signs out here at once, and then at the daemon, where the token of a link ends with it. */
export async function leave(): Promise<void> {
    const headers = { authorization: "Bearer " + token.value };
    if (shared && token.value !== null) say({ left: token.value });
    signOut(null);
    try {
        await fetch("/v1/session", { method: "DELETE", headers, keepalive: true });
    } catch {
        if (token.value === null) refusal.value = "Signed out here. The daemon does not answer: the token stays valid until it expires.";
    }
}

/** Takes the code out of the address; null when there is none. */
function takeCode(): string | null {
    const code = new URLSearchParams(location.hash.slice(1)).get("code");
    if (code !== null) history.replaceState(null, "", location.pathname + location.search);
    return code;
}

/** Redeems a one-time code. A tab that is signed in already stays so when the code is not good. */
async function redeem(code: string): Promise<void> {
    let answer: { token?: string; error?: { text: string } };
    try {
        const response = await fetch("/v1/session", {
            method: "POST",
            headers: { "content-type": "application/json" },
            body: JSON.stringify({ code }),
        });
        answer = await response.json();
    } catch {
        refusal.value = "The daemon did not answer. Is detent up running?";
        return;
    }
    if (answer.token) signIn(answer.token, true);
    else refusal.value = answer.error?.text ?? "The code was not accepted.";
}
