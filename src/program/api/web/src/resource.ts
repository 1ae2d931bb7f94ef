// SPDX-License-Identifier: MIT
// Copyright the detent authors

// A value of the API that a view shows: asked for once, and again when something happened.
import { useEffect, useRef, useState } from "preact/hooks";
import { Failure, get, query, words, type Query } from "./api";
import { listen, type Topic } from "./live";
import type { LogRow, Page } from "./types";

export interface Resource<T> {
    data: T | null;
    error: string | null;
    missing: boolean;
    /** The daemon has nothing of the kind: no store, no tasks. */
    unsupported: boolean;
    loading: boolean;
    refresh: () => void;
}

export interface Options {
    /** Which news make the value old. */
    on?: Topic[];
    /** Whether a row does; all do when left out. */
    when?: (row: LogRow) => boolean;
    /** At most one request in so many milliseconds. */
    every_ms?: number;
    /** It has counts, which the daemon keeps for half a second: what is told at once may be old. */
    counts?: boolean;
    /** Ask again after so many milliseconds even without news. */
    poll_ms?: number;
}

/** Longer than a count is kept, and short enough to be seen within a second. */
export const COUNTS_MS = 550;

/** The answers of views that were left, so that going back shows them at once. */
const kept = new Map<string, unknown>();
const KEPT_MAX = 60;

function keep(target: string, value: unknown): void {
    kept.delete(target);
    kept.set(target, value);
    if (kept.size > KEPT_MAX) kept.delete(kept.keys().next().value!);
}

export function forget(): void {
    kept.clear();
}

type Fetch<T> = (target: string, init: RequestInit) => Promise<T>;

/**
 * One value, kept fresh. Requests do not overlap; an expensive one is asked less often, since the
 * pause is at least four times as long as the answer took.
 */
class Poller<T> {
    private timer: ReturnType<typeof setTimeout> | undefined;
    private busy = false;
    private again = false;
    private took_ms = 0;
    private asked_at = 0;
    private readonly abort = new AbortController();

    constructor(
        private readonly target: string,
        private readonly every_ms: number,
        private readonly fetch: Fetch<T>,
        private readonly tell: (data: T | null, error: unknown) => void,
    ) {}

    /** Asks as soon as the pause allows. */
    want(): void {
        if (this.busy) {
            this.again = true;
            return;
        }
        if (this.timer !== undefined) return;
        const pause = Math.max(this.every_ms, this.took_ms * 4);
        const left = this.asked_at + pause - performance.now();
        this.timer = setTimeout(() => void this.ask(), Math.max(0, left));
    }

    async ask(): Promise<void> {
        clearTimeout(this.timer);
        this.timer = undefined;
        if (this.busy) {
            this.again = true;
            return;
        }
        this.busy = true;
        this.asked_at = performance.now();
        try {
            const data = await this.fetch(this.target, { signal: this.abort.signal });
            keep(this.target, data);
            this.tell(data, null);
        } catch (error) {
            if (!this.abort.signal.aborted) this.tell(null, error);
        }
        this.took_ms = performance.now() - this.asked_at;
        this.busy = false;
        if (this.again && !this.abort.signal.aborted) {
            this.again = false;
            this.want();
        }
    }

    stop(): void {
        clearTimeout(this.timer);
        this.abort.abort();
    }
}

interface Shown<T> {
    target: string | null;
    data: T | null;
    error: unknown;
}

/** `target` null: nothing is asked. */
export function useResource<T>(target: string | null, options: Options = {}): Resource<T> {
    return useFetched<T>(target, options, get);
}

const PAGE = 500;

/** The first pages of a list, as one: so many, and more where they are too short for `rows`. */
async function pages<T>(target: string, count: number, rows: number, init: RequestInit): Promise<Page<T>> {
    const all: Page<T> = { items: [], next: null, left_out: 0 };
    for (let i = 0; (i < count || all.items.length < rows) && (i === 0 || all.next !== null); i++) {
        const page: Page<T> = await get<Page<T>>(target + query({ after: all.next }).replace("?", "&"), init);
        all.items.push(...page.items);
        all.next = page.next ?? null;
        all.left_out! += page.left_out ?? 0;
    }
    return all;
}

/** A list that is kept fresh as far as it was asked for: `rows` at a time, or a page. */
export function useList<T>(path: string, values: Query, options: Options, rows = 0): Resource<Page<T>> & { more: () => void } {
    const target = path + query({ ...values, limit: PAGE });
    const wanted = useRef({ target, count: 1 });
    if (wanted.current.target !== target) wanted.current = { target, count: 1 };
    const list = useFetched<Page<T>>(target, options, (asked, init) => {
        const { count } = wanted.current;
        return pages<T>(asked, count, count * rows, init);
    });
    const more = () => {
        wanted.current.count++;
        list.refresh();
    };
    return { ...list, more };
}

function useFetched<T>(target: string | null, options: Options, fetch: Fetch<T>): Resource<T> {
    const [shown, show] = useState<Shown<T>>({ target: null, data: null, error: null });
    const poller = useRef<Poller<T> | null>(null);
    const settings = useRef(options);
    settings.current = options;
    useEffect(() => {
        if (target === null) return;
        const made = new Poller<T>(target, settings.current.every_ms ?? 400, fetch, (data, error) =>
            show((before) => ({
                target,
                data: data ?? (before.target === target ? before.data : null),
                error,
            })),
        );
        let late: ReturnType<typeof setTimeout> | undefined;
        poller.current = made;
        void made.ask();
        const stop = listen((rows, topics) => {
            const { on = [], when, counts } = settings.current;
            const news = topics.has("all") || on.some((topic) => topic !== "log" && topics.has(topic));
            const moved = on.includes("log") && (when ? rows.some(when) : rows.length > 0);
            if (!news && !moved) return;
            made.want();
            clearTimeout(late);
            if (counts) late = setTimeout(() => made.want(), COUNTS_MS);
        });
        const { poll_ms } = settings.current;
        const timer = poll_ms ? setInterval(() => made.want(), poll_ms) : undefined;
        return () => {
            stop();
            made.stop();
            clearTimeout(late);
            clearInterval(timer);
        };
    }, [target]);
    const own = shown.target === target && target !== null;
    const data = own ? shown.data : target !== null ? ((kept.get(target) as T) ?? null) : null;
    const error = own ? shown.error : null;
    return {
        data,
        error: error ? words(error) : null,
        missing: error instanceof Failure && error.status === 404,
        unsupported: error instanceof Failure && error.code === "UNSUPPORTED",
        loading: target !== null && data === null && !error,
        refresh: () => void poller.current?.ask(),
    };
}
