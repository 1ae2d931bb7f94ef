// SPDX-License-Identifier: MIT
// Copyright the detent authors

// Who is signed in: a token in a variable of this page, which leaves with it.
//
// Only who asks for it has the token in sessionStorage too, where a reload of the tab finds it, and
// where every script of this origin could.
//
// `detent up` prints a link with a one-time code behind #. The code leaves the address bar before
// anything else happens, so that it is in no history, no screenshot and no referrer.
import { signal } from "@preact/signals";

const KEY = "detent.token";

export const token = signal<string | null>(stored());
/** Whether a link has signed in, and nobody has said yet what a reload shall find. */
export const offer = signal(false);
/** Why the sign-in view is shown again, if it is. */
export const refusal = signal<string | null>(null);

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

/** The tab keeps the token from now on, or does no longer. */
export function keep(stay: boolean): void {
    offer.value = false;
    store(stay ? token.value : null);
}

export function signIn(value: string, stay: boolean): void {
    refusal.value = null;
    token.value = value;
    keep(stay);
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
    signOut(null);
    try {
        await fetch("/v1/session", { method: "DELETE", headers, keepalive: true });
    } catch {
        if (token.value === null) refusal.value = "Signed out here. The daemon does not answer: to it the token is good until it expires.";
    }
}

/** Whether this page is a reload, perhaps of one that had a token. */
export function wasReloaded(): boolean {
    const [entry] = performance.getEntriesByType("navigation") as PerformanceNavigationTiming[];
    return entry?.type === "reload";
}

/** Takes the code out of the address; null when there is none. */
export function takeCode(): string | null {
    const code = new URLSearchParams(location.hash.slice(1)).get("code");
    if (code !== null) history.replaceState(null, "", location.pathname + location.search);
    return code;
}

/** Redeems a one-time code. */
export async function redeem(code: string): Promise<void> {
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
    if (answer.token) {
        signIn(answer.token, false);
        offer.value = true;
    } else refusal.value = answer.error?.text ?? "The code was not accepted.";
}
