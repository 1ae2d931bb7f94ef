// SPDX-License-Identifier: MIT
// Copyright the detent authors

// A value of the API that a view shows: asked for once, and again when something happened.
import { useEffect, useRef, useState } from "preact/hooks";
import { Failure, get, words } from "./api";
import { listen, type Topic } from "./live";
import type { LogRow } from "./types";

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
    /** Ask again after so many milliseconds even without news. */
    poll_ms?: number;
}

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
            const data = await get<T>(this.target, { signal: this.abort.signal });
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
    const [shown, show] = useState<Shown<T>>({ target: null, data: null, error: null });
    const poller = useRef<Poller<T> | null>(null);
    const settings = useRef(options);
    settings.current = options;
    useEffect(() => {
        if (target === null) return;
        const made = new Poller<T>(target, settings.current.every_ms ?? 400, (data, error) =>
            show((before) => ({
                target,
                data: data ?? (before.target === target ? before.data : null),
                error,
            })),
        );
        poller.current = made;
        void made.ask();
        const stop = listen((rows, topics) => {
            const { on = [], when } = settings.current;
            const news = topics.has("all") || on.some((topic) => topic !== "log" && topics.has(topic));
            const moved = on.includes("log") && (when ? rows.some(when) : rows.length > 0);
            if (news || moved) made.want();
        });
        const { poll_ms } = settings.current;
        const timer = poll_ms ? setInterval(() => made.want(), poll_ms) : undefined;
        return () => {
            stop();
            made.stop();
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
