// SPDX-License-Identifier: MIT
// Copyright the detent authors

// The view of somebody without a token.
import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { Logo } from "../shell";
import { refusal, signIn } from "../session";
import { Button, Trouble } from "../ui";

export function SignIn(): JSX.Element {
    const [text, setText] = useState("");
    const [stay, setStay] = useState(true);
    const [busy, setBusy] = useState(false);
    const input = useRef<HTMLInputElement>(null);
    useEffect(() => {
        document.title = "Sign in · detent";
        input.current?.focus();
    }, []);
    const submit = async (event: Event) => {
        event.preventDefault();
        const value = text.trim();
        if (!value) return;
        setBusy(true);
        refusal.value = await tried(value);
        setBusy(false);
        if (refusal.value === null) signIn(value, stay);
    };
    return (
        <main class="sign-in">
            <form class="sign-in-card" onSubmit={submit}>
                <Logo />
                <h1>detent</h1>
                <p class="muted">
                    Open the link that <code>detent up</code> prints, or paste a token.{" "}
                    <code>detent token new</code> makes one.
                </p>
                {refusal.value && <Trouble text={refusal.value} />}
                <label class="sr" for="token">
                    Token
                </label>
                <input
                    id="token"
                    ref={input}
                    type="password"
                    placeholder="Token"
                    autocomplete="off"
                    spellcheck={false}
                    value={text}
                    onInput={(event) => setText(event.currentTarget.value)}
                />
                <label class="tick">
                    <input type="checkbox" checked={stay} onChange={(event) => setStay(event.currentTarget.checked)} />
                    <span>
                        Stay signed in <span class="muted">until the last tab of this browser is closed</span>
                    </span>
                </label>
                <Button type="submit" kind="primary" busy={busy} disabled={!text.trim()}>
                    Sign in
                </Button>
            </form>
        </main>
    );
}

/** Why the token does not do, or null. */
async function tried(value: string): Promise<string | null> {
    try {
        const headers = new Headers({ authorization: "Bearer " + value });
        const response = await fetch("/v1/status", { headers, cache: "no-store" });
        if (response.ok || response.status === 403 || response.status === 503) return null;
        return (await response.json()).error.text;
    } catch {
        return "The token is invalid, or the daemon does not answer.";
    }
}
