// SPDX-License-Identifier: MIT
// Copyright the detent authors

// Server-Sent Events over fetch: EventSource cannot send the token.
//
// Read as the standard says: lines end with CR, LF or both, `data` lines are joined, a block ends
// with an empty line, and a block that the connection cut off is no event.

export interface Message {
    event: string;
    data: string;
    id: string | null;
}

/** Cuts a stream of text into messages, however it was cut into pieces. */
export class Splitter {
    private rest = "";
    private event = "";
    private data: string[] = [];
    private id: string | null = null;

    push(text: string): Message[] {
        const messages: Message[] = [];
        const all = this.rest + text;
        // A CR at the end may be the first half of a line end.
        const whole = all.endsWith("\r") ? all.slice(0, -1) : all;
        const lines = whole.split(/\r\n|\r|\n/);
        this.rest = lines.pop()! + all.slice(whole.length);
        for (const line of lines) {
            const message = this.line(line);
            if (message) messages.push(message);
        }
        return messages;
    }

    private line(line: string): Message | null {
        if (line === "") return this.end();
        const colon = line.indexOf(":");
        const name = colon < 0 ? line : line.slice(0, colon);
        const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
        if (name === "data") this.data.push(value);
        else if (name === "event") this.event = value;
        else if (name === "id" && !value.includes("\0")) this.id = value;
        return null;
    }

    private end(): Message | null {
        const { data, event, id } = this;
        this.data = [];
        this.event = "";
        this.id = null;
        return data.length ? { event: event || "message", data: data.join("\n"), id } : null;
    }
}

/** A daemon that is there says something every 15 s; one that is silent for so long is gone. */
const SILENCE_MS = 40000;

/**
 * Reads a response to its end, or until it has been silent for too long: a connection that died
 * while a laptop slept has no other end. Asked of the clock, since timers sleep as well.
 */
export async function read(response: Response, tell: (message: Message) => void): Promise<void> {
    const reader = response.body!.getReader();
    const decoder = new TextDecoder();
    const splitter = new Splitter();
    let heard = Date.now();
    const watch = setInterval(() => Date.now() - heard > SILENCE_MS && void reader.cancel(), 2000);
    try {
        for (;;) {
            const { done, value } = await reader.read();
            if (done) return;
            heard = Date.now();
            for (const message of splitter.push(decoder.decode(value, { stream: true }))) tell(message);
        }
    } finally {
        clearInterval(watch);
    }
}
