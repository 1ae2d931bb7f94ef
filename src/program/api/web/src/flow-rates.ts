// SPDX-License-Identifier: MIT
// Copyright the detent authors

// How fast flows are: differences of their counts from one answer to the next, over a minute.
import type { Flow } from "./types";

export interface Minute {
    in: number[];
    out: number[];
    lag: number[];
    rejected: number[];
}

const SAMPLES = 60;
const SPAN_MS = 900;

interface Known {
    at: number;
    before: Flow;
    minute: Minute;
}

const known = new Map<string, Known>();

function zeros(): number[] {
    return new Array<number>(SAMPLES).fill(0);
}

function pushed(values: number[], value: number): number[] {
    return [...values.slice(1), value];
}

/** Takes an answer of the API; tells the last minute of the flow. */
export function minuteOf(flow: Flow): Minute {
    const now = performance.now();
    const found = known.get(flow.name);
    if (!found) {
        const minute = { in: zeros(), out: zeros(), lag: zeros(), rejected: zeros() };
        known.set(flow.name, { at: now, before: flow, minute });
        return minute;
    }
    const { at, minute } = found;
    if (flow === found.before || now - at < SPAN_MS) return minute;
    // A new run counts from 0.
    const before = found.before.run === flow.run ? found.before : { rows_in: 0, rows_out: 0, rejected: 0 };
    const per = (count: number) => (Math.max(0, count) * 1000) / (now - at);
    const next = {
        in: pushed(minute.in, per(flow.rows_in - before.rows_in)),
        out: pushed(minute.out, per(flow.rows_out - before.rows_out)),
        lag: pushed(minute.lag, flow.lag),
        rejected: pushed(minute.rejected, per(flow.rejected - before.rejected)),
    };
    known.set(flow.name, { at: now, before: flow, minute: next });
    return next;
}
