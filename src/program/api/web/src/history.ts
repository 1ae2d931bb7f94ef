// SPDX-License-Identifier: MIT
// Copyright the detent authors

// The history of one instance, as far as it was loaded, and what can be told from it.
import { useEffect, useRef, useState } from "preact/hooks";
import { get, path, query, words } from "./api";
import { arrowKey, type Trace } from "./diagram";
import { millis } from "./format";
import { listen } from "./live";
import type { Data, HistoryRow, Page } from "./types";

const PAGE = 300;

export interface History {
    rows: HistoryRow[];
    /** Rows before the first one are there, but not here. */
    earlier: boolean;
    error: string | null;
    loading: boolean;
    loadEarlier: () => void;
}

/** Rows by sequence, each once. */
function join(a: HistoryRow[], b: HistoryRow[]): HistoryRow[] {
    const all = new Map(a.map((row) => [row.sequence, row]));
    for (const row of b) all.set(row.sequence, row);
    return [...all.values()].sort((x, y) => x.sequence - y.sequence);
}

async function pages(target: string, after: number, until: number | null): Promise<HistoryRow[]> {
    let rows: HistoryRow[] = [];
    for (let next: number | null = after; next !== null; ) {
        // The start stands at 0: behind nothing, not behind 0.
        const values = { after: next > 0 ? next : null, limit: PAGE, data: true };
        const page: Page<HistoryRow> = await get<Page<HistoryRow>>(target + query(values));
        rows = rows.concat(page.items);
        const last = page.items[page.items.length - 1]?.sequence;
        if (until !== null && last !== undefined && last >= until) break;
        next = page.next as number | null;
    }
    return until === null ? rows : rows.filter((row) => row.sequence <= until);
}

/** `sequence` is that of the instance when it was first asked for: its newest rows come first. */
export function useHistory(machine: string, id: string, sequence: number | null): History {
    const [rows, setRows] = useState<HistoryRow[]>([]);
    const [error, setError] = useState<string | null>(null);
    const [loading, setLoading] = useState(true);
    const shown = useRef<HistoryRow[]>([]);
    const busy = useRef(false);
    const again = useRef(false);
    const target = path("machines", machine, "instances", id, "history");
    const known = sequence !== null;
    const take = async (after: number, until: number | null) => {
        if (busy.current) {
            again.current = true;
            return;
        }
        busy.current = true;
        try {
            shown.current = join(shown.current, await pages(target, after, until));
            setRows(shown.current);
            setError(null);
        } catch (failure) {
            setError(words(failure));
        }
        setLoading(false);
        busy.current = false;
        if (!again.current) return;
        again.current = false;
        void newer();
    };
    const newer = () => {
        const last = shown.current[shown.current.length - 1]?.sequence;
        return take(last ?? Math.max(0, (sequence ?? 0) - PAGE), null);
    };
    useEffect(() => {
        if (!known) return;
        void newer();
        return listen((news, topics) => {
            if (topics.has("all") || news.some((row) => row.machine === machine && row.id === id)) void newer();
        });
    }, [known]);
    const first = rows[0];
    const loadEarlier = () => void take(Math.max(0, first.sequence - 1 - PAGE), first.sequence - 1);
    return { rows, earlier: !!first && first.type !== "start", error, loading, loadEarlier };
}

export function stateAfter(row: HistoryRow): string {
    return row.to ?? row.state ?? "";
}

/** What the rows up to `end` show in a drawing. */
export function traceOf(rows: HistoryRow[], end: number): Trace {
    const states = new Set<string>();
    const arrows = new Set<string>();
    let last: string | null = null;
    for (const row of rows.slice(0, end + 1)) {
        states.add(stateAfter(row));
        if (row.from) states.add(row.from);
        if (!row.event || !row.from) continue;
        last = arrowKey(row.from, row.event, row.outcome === "stop" ? null : (row.to ?? row.from));
        arrows.add(last);
    }
    const row = rows[end];
    return { states, arrows, last, current: row ? stateAfter(row) : null, ended: row?.outcome === "stop" };
}

/** How wide a row is in the strip: a day must not hide a second. */
export function weight(ms: number): number {
    return 1 + Math.log10(1 + Math.max(0, ms) / 100);
}

/** The time until the next row; the last one lasts until now, or until nothing any more. */
export function lasted(rows: HistoryRow[], i: number, end_ms: number): number {
    const next = rows[i + 1];
    return Math.max(0, (next ? millis(next.at) : end_ms) - millis(rows[i].at));
}

/** A gap is folded when it is long, and long for this instance. */
export function idleGap(rows: HistoryRow[]): number {
    const gaps = rows.slice(1).map((row, i) => millis(row.at) - millis(rows[i].at));
    const sorted = gaps.sort((a, b) => a - b);
    return Math.max(5000, 8 * (sorted[Math.floor(sorted.length / 2)] ?? 0));
}

export interface Change {
    name: string;
    kind: "same" | "added" | "changed" | "removed";
    before: unknown;
    after: unknown;
}

export function diff(before: Data | null | undefined, after: Data | null | undefined): Change[] {
    const names = [...new Set([...Object.keys(before ?? {}), ...Object.keys(after ?? {})])];
    return names.map((name) => {
        const [a, b] = [before?.[name], after?.[name]];
        const same = JSON.stringify(a, text) === JSON.stringify(b, text);
        const kind = !before || same ? "same" : a === undefined ? "added" : b === undefined ? "removed" : "changed";
        return { name, kind, before: a, after: b };
    });
}

function text(_: string, value: unknown): unknown {
    return typeof value === "bigint" ? value.toString() + "n" : value;
}
