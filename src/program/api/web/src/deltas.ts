// SPDX-License-Identifier: MIT
// Copyright the detent authors

// Changes of workers, as they come: a stream of its own, open while a view shows workers.
//
// It resumes by the sync id of the last delta, so that none is missed; views ask the API what has
// become of it, and so need to know only that something has.
import { useEffect } from "preact/hooks";
import { Failure, open } from "./api";
import { asleep, connection, note } from "./live";
import { read, type Message } from "./sse";

const AGAIN_MS = 1500;

let last: string | null = null;

function tell(message: Message): void {
    if (message.id !== null) last = message.id;
    if (message.event === "delta" || message.event === "bootstrap") note("workers");
}

async function follow(signal: AbortSignal): Promise<boolean> {
    const headers: Record<string, string> = { accept: "text/event-stream" };
    if (last !== null) headers["last-event-id"] = last;
    try {
        const response = await open("/deltas?follow=true", { headers, signal });
        note("workers");
        await read(response, tell);
    } catch (error) {
        // A daemon without a store has nothing to tell.
        if (error instanceof Failure && error.code === "UNSUPPORTED") return false;
    }
    return !signal.aborted;
}

/** While this view is there, what changes in workers is told as the topic `workers`. */
export function useDeltas(): void {
    // Who has lost the one connection tries the other when it is back.
    const away = asleep.value || connection.value.state !== "live";
    useEffect(() => {
        if (away) return;
        const abort = new AbortController();
        let timer: ReturnType<typeof setTimeout>;
        const run = async () => {
            if (await follow(abort.signal)) timer = setTimeout(() => void run(), AGAIN_MS);
        };
        void run();
        return () => {
            abort.abort();
            clearTimeout(timer);
        };
    }, [away]);
}
