// SPDX-License-Identifier: MIT
// Copyright the detent authors

// Who is signed in: a token in a variable, and in sessionStorage when the tab is to keep it.
//
// `detent up` prints a link with a one-time code behind #. The code leaves the address bar before
// anything else happens, so that it is in no history, no screenshot and no referrer.
import { signal } from "@preact/signals";

const KEY = "detent.token";

export const token = signal<string | null>(stored());
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

export function signIn(value: string, stay: boolean): void {
    refusal.value = null;
    if (stay) store(value);
    token.value = value;
}

/** Forgets the token; `why` is shown on the sign-in view. */
export function signOut(why: string | null): void {
    store(null);
    refusal.value = why;
    token.value = null;
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
    if (answer.token) signIn(answer.token, true);
    else refusal.value = answer.error?.text ?? "The code was not accepted.";
}
