// SPDX-License-Identifier: MIT
// Copyright the detent authors

// Rows of a flow as they are acknowledged: the last ones, then those that come.
//
//   loading --page--> following --end, error--> waiting --time--> following
//                         |  ^
//                   pause v  | resume
//                       paused
//
// 1. `place` is the id of the last event that was shown. A connection resumes after it, also after a
//    pause, so no row is missing and none is shown twice.
// 2. A flow may be faster than any view. One that has fallen far behind continues at the end, and
//    says in its place how many positions it has left out.
// 3. Only rows that are shown are parsed.
import { useEffect, useRef, useState } from "preact/hooks";
import { Failure, get, open, path, query, words } from "./api";
import { parse } from "./json";
import { asleep, connection } from "./live";
import { read, type Message } from "./sse";
import type { FlowRow, FlowRows } from "./types";

export interface Remark {
    remark: string;
    /** Unique among the rows. */
    key: string;
}

export type Entry = FlowRow | Remark;

export interface Shown {
    /** Newest first. */
    entries: Entry[];
    state: "loading" | "live" | "waiting" | "paused";
    error: string | null;
    /** Where earlier rows begin; null: there are none. */
    before: number | null;
}

const SHOWN_MAX = 120;
const FIRST = 50;
const FLUSH_MS = 150;
const AGAIN_MS = 1500;
const BEHIND_MAX = 20000;

export function isRow(entry: Entry): entry is FlowRow {
    return "position" in entry;
}

interface Place {
    run: number;
    position: number;
}

/** A flow in memory has no runs to resume in: it is read again. */
function placeOf(id: string): Place | null {
    const [run, position] = id.split("~").map(Number);
    return run > 0 ? { run, position } : null;
}

export class Tap {
    private entries: Entry[] = [];
    private pending: Message[] = [];
    private place: Place | null = null;
    private before: number | null = null;
    private state: Shown["state"] = "loading";
    private error: string | null = null;
    private abort: AbortController | null = null;
    private timer: ReturnType<typeof setTimeout> | undefined;
    private flusher: ReturnType<typeof setTimeout> | undefined;
    private remarks = 0;
    /** The last acknowledged position, as far as it is known. */
    end = 0;

    constructor(
        private readonly flow: string,
        private readonly stream: string | null,
        private readonly tell: (shown: Shown) => void,
    ) {}

    start(): void {
        void this.run();
    }

    stop(): void {
        clearTimeout(this.timer);
        clearTimeout(this.flusher);
        this.abort?.abort();
        this.abort = null;
    }

    pause(): void {
        this.stop();
        this.flush();
        this.set("paused");
    }

    private set(state: Shown["state"], error: string | null = null): void {
        this.state = state;
        this.error = error;
        this.tell({ entries: this.entries, state, error, before: this.before });
    }

    private async run(): Promise<void> {
        const abort = (this.abort = new AbortController());
        let error: string | null = null;
        try {
            if (!this.place) await this.begin(abort.signal);
            await this.follow(abort.signal);
        } catch (failure) {
            error = words(failure);
            if (failure instanceof Failure && failure.status === 404) return this.abort === abort ? this.set("waiting", error) : undefined;
        }
        if (this.abort !== abort) return;
        this.flush();
        this.set("waiting", error);
        this.timer = setTimeout(() => void this.run(), AGAIN_MS);
    }

    private async begin(signal: AbortSignal): Promise<void> {
        const page = await get<FlowRows>(path("flows", this.flow, "rows") + query({ stream: this.stream, backward: true, limit: FIRST }), { signal });
        this.entries = page.items;
        this.before = page.next;
        this.place = page.run ? { run: page.run, position: page.position } : null;
    }

    /** Adds rows before those that are shown. */
    async earlier(): Promise<void> {
        if (this.before === null) return;
        const page = await get<FlowRows>(path("flows", this.flow, "rows") + query({ stream: this.stream, backward: true, limit: FIRST, after: this.before }));
        this.entries = [...this.entries, ...page.items];
        this.before = page.next;
        this.set(this.state, this.error);
    }

    private async follow(signal: AbortSignal): Promise<void> {
        const after = this.place && `${this.place.run}~${this.place.position}`;
        const target = path("flows", this.flow, "stream") + query({ stream: this.stream, after });
        const response = await open(target, { headers: { accept: "text/event-stream" }, signal });
        this.set("live");
        await read(response, (message) => this.take(message));
    }

    private take(message: Message): void {
        if (message.id !== null) this.place = placeOf(message.id);
        if (message.event === "dropped") return;
        this.pending.push(message);
        if (this.pending.length > 2 * SHOWN_MAX) this.pending = this.pending.slice(-SHOWN_MAX);
        this.flusher ??= setTimeout(() => this.flush(), FLUSH_MS);
    }

    private remark(text: string): Remark {
        return { remark: text, key: `remark-${this.remarks++}` };
    }

    private entryOf(message: Message): Entry[] {
        if (message.event === "row") return [parse(message.data) as FlowRow];
        const values = parse(message.data) as { run?: number; rows?: number };
        if (message.event === "run") return [this.remark(`Run ${values.run} begins.`)];
        if (message.event === "lost") return [this.remark(`Retention has dropped ${values.rows} positions.`)];
        return [];
    }

    private flush(): void {
        clearTimeout(this.flusher);
        this.flusher = undefined;
        if (!this.pending.length) return;
        const fresh = this.pending.slice(-SHOWN_MAX).flatMap((message) => this.entryOf(message)).reverse();
        this.pending = [];
        this.entries = [...fresh, ...this.entries];
        this.trim();
        this.skip();
        if (fresh.length) this.set(this.state, this.error);
    }

    /** What is left out at the end is read again on request. */
    private trim(): void {
        if (this.entries.length <= SHOWN_MAX) return;
        this.entries = this.entries.slice(0, SHOWN_MAX);
        this.before = this.entries.filter(isRow).at(-1)?.position ?? this.before;
    }

    private skip(): void {
        const behind = this.place ? this.end - this.place.position : 0;
        if (behind < BEHIND_MAX || !this.abort) return;
        this.place = { run: this.place!.run, position: this.end };
        this.entries = [this.remark(`${behind} positions are left out: the flow is faster than this view. Pause, and read them from a position.`), ...this.entries];
        this.stop();
        this.start();
    }
}

const NOTHING: Shown = { entries: [], state: "loading", error: null, before: null };

/** Follows a stream; null: all of them. It rests while `paused`, and while nobody looks. */
export function useTap(flow: string, stream: string | null, paused: boolean, end: number) {
    const [shown, show] = useState<{ key: string; shown: Shown }>({ key: "", shown: NOTHING });
    const tap = useRef<Tap | null>(null);
    const key = JSON.stringify([flow, stream]);
    const rests = paused || asleep.value || connection.value.state !== "live";
    useEffect(() => {
        const made = new Tap(flow, stream, (value) => show({ key, shown: value }));
        tap.current = made;
        return () => made.stop();
    }, [key]);
    useEffect(() => {
        if (rests) tap.current?.pause();
        else tap.current?.start();
        return () => tap.current?.stop();
    }, [key, rests]);
    if (tap.current) tap.current.end = end;
    return { ...(shown.key === key ? shown.shown : NOTHING), earlier: () => tap.current?.earlier() ?? Promise.resolve() };
}
