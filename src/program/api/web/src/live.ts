// SPDX-License-Identifier: MIT
// Copyright the detent authors

// The live connection: what happens, as it happens, and what the views are told of it.
//
//   off --start--> connecting --answer--> live --end, error--> waiting --time or retry--> connecting
//
// 1. `last` is the position of the newest log row that was told; a connection resumes behind it,
//    and a row at or before it is not told again. So nothing is lost and nothing is doubled.
// 2. A server whose log ends before `last` has another log, and its hello says where that ends:
//    everything is forgotten and asked anew.
// 3. What has no position (tasks, slots) is asked again after each connection. Without a store there
//    is no log, and no hello.
// 4. A connection that is silent for too long is dead, whatever it looks like (sse.ts).
// 5. A tab that nobody has seen for a while lets go of its connection, since a browser has few of
//    them for one host, and all tabs share them. It resumes when it is looked at.
import { batch, signal } from "@preact/signals";
import { Failure, get, open } from "./api";
import { parse } from "./json";
import { read, type Message } from "./sse";
import { token } from "./session";
import type { LogRow } from "./types";

export type Connection =
    | { state: "off" | "connecting" | "live" }
    | { state: "waiting"; until: number; why: string };

export interface Condition {
    state: "running" | "draining" | "stopping";
    /** Why its store cannot be reached, if it cannot. */
    away: string | null;
}

export type Topic = "log" | "tasks" | "workers" | "all";
type Listener = (rows: LogRow[], topics: ReadonlySet<Topic>) => void;

const RECENT_MAX = 2000;
const BACKOFF_FIRST_MS = 500;
const BACKOFF_MAX_MS = 15000;
const UNSEEN_MS = 30000;
/** Bundles are told so often, and less often when they are large. */
const CALM_MS = 50;
const CROWD_MS = 250;
const CROWD_ROWS = 20;

export const connection = signal<Connection>({ state: "off" });
/** The newest rows, newest first. */
export const recent = signal<LogRow[]>([]);
/** How the daemon is, as it says itself; null while nobody is there to say it. */
export const condition = signal<Condition | null>(null);
/** Rises with each log that was begun anew, so that views drop what they gathered. */
export const generation = signal(0);
/** Nobody looks: what holds a connection lets go of it. */
export const asleep = signal(false);
/** Rows that were told since the page was opened. */
export const told = signal(0);

const listeners = new Set<Listener>();
let last: number | null = null;
let failures = 0;
/** What the daemon said as it ended the connection. */
let farewell: string | null = null;
let abort: AbortController | null = null;
let wake: (() => void) | null = null;
let pendingRows: LogRow[] = [];
let pendingTopics = new Set<Topic>();
let scheduled = false;
let crowded = false;

/** Tells `listener` what happened, in bundles; returns how to stop that. */
export function listen(listener: Listener): () => void {
    listeners.add(listener);
    return () => listeners.delete(listener);
}

/** Many events a second must not be many renders a second. */
function schedule(): void {
    if (scheduled) return;
    scheduled = true;
    setTimeout(flush, crowded ? CROWD_MS : CALM_MS);
}

function flush(): void {
    const rows = pendingRows;
    const topics = pendingTopics;
    scheduled = false;
    crowded = rows.length > CROWD_ROWS;
    pendingRows = [];
    pendingTopics = new Set();
    batch(() => {
        if (rows.length) {
            told.value += rows.length;
            recent.value = [...rows].reverse().concat(recent.value).slice(0, RECENT_MAX);
        }
        for (const listener of listeners) listener(rows, topics);
    });
}

/** Something of this kind has happened: views that show it ask again. */
export function note(topic: Topic): void {
    pendingTopics.add(topic);
    schedule();
}

function hello(position: number | null): void {
    if (position !== null && last !== null && position !== last) {
        last = null;
        pendingRows = [];
        recent.value = [];
        generation.value++;
        note("all");
    }
    if (last !== null) return;
    last = position;
    if (position) void lookBack(position);
}

/** What happened just before, so that the first sight is not empty; nobody is told of it. */
async function lookBack(position: number): Promise<void> {
    try {
        const page = await get<{ items: LogRow[] }>("/log?backward=true&limit=50");
        const before = page.items.filter((row) => row.position <= position);
        recent.value = recent.value.filter((row) => row.position > position).concat(before);
    } catch {
        // It fills by itself, then.
    }
}

function connected(): void {
    failures = 0;
    connection.value = { state: "live" };
    note("all");
}

function tell(message: Message): void {
    if (message.event === "hello") {
        const { position } = parse(message.data) as { position?: number | null };
        hello(position ?? null);
    } else if (message.event === "log") {
        const row = parse(message.data) as LogRow;
        const position = message.id !== null ? Number(message.id) : row.position;
        if (last !== null && position <= last) return;
        last = position;
        pendingRows.push(row);
        note("log");
    } else if (message.event === "status") {
        condition.value = parse(message.data) as Condition;
        note("tasks");
    } else if (message.event === "task" || message.event === "missed") {
        note("tasks");
    } else if (message.event === "dropped") {
        farewell = (parse(message.data) as { why?: string }).why ?? null;
    }
}

async function connect(): Promise<string> {
    abort = new AbortController();
    const headers: Record<string, string> = { accept: "text/event-stream" };
    if (last !== null) headers["last-event-id"] = String(last);
    farewell = null;
    try {
        const target = "/events?topics=log,tasks";
        const response = await open(target, { headers, signal: abort.signal });
        connected();
        await read(response, tell);
        return farewell ?? "The connection was closed.";
    } catch (error) {
        return error instanceof Failure ? error.message : "The daemon does not answer.";
    } finally {
        condition.value = null;
    }
}

/** Doubles up to a limit; half of it is chance, so that many consoles do not knock together. */
function delay(): number {
    const whole = Math.min(BACKOFF_MAX_MS, BACKOFF_FIRST_MS * 2 ** Math.min(failures, 10));
    failures++;
    return whole / 2 + (whole / 2) * Math.random();
}

/** Until somebody looks again. */
async function sleep(): Promise<void> {
    connection.value = { state: "connecting" };
    await new Promise<void>((resolve) => (wake = resolve));
    wake = null;
}

async function pause(why: string): Promise<void> {
    const ms = delay();
    connection.value = { state: "waiting", until: Date.now() + ms, why };
    await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, ms);
        wake = () => {
            clearTimeout(timer);
            resolve();
        };
    });
    wake = null;
}

let running = false;

async function run(): Promise<void> {
    if (running) return;
    running = true;
    while (token.value !== null) {
        if (connection.value.state !== "waiting") connection.value = { state: "connecting" };
        const why = await connect();
        if (asleep.value) await sleep();
        else if (token.value !== null) await pause(why);
    }
    running = false;
    connection.value = { state: "off" };
}

/** Connects again now instead of later. */
export function retry(): void {
    failures = 0;
    wake?.();
}

function watch(): void {
    let timer: ReturnType<typeof setTimeout>;
    document.addEventListener("visibilitychange", () => {
        clearTimeout(timer);
        if (!document.hidden && asleep.value) {
            asleep.value = false;
            retry();
        } else if (document.hidden)
            timer = setTimeout(() => {
                asleep.value = true;
                abort?.abort();
            }, UNSEEN_MS);
    });
}

/** Follows the token: connected while there is one. */
export function start(): void {
    token.subscribe((value) => {
        if (value !== null) {
            void run();
            return;
        }
        last = null;
        recent.value = [];
        abort?.abort();
        wake?.();
    });
    addEventListener("online", retry);
    watch();
}
