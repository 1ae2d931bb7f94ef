// SPDX-License-Identifier: MIT
// Copyright the detent authors

// The journal: all events of all instances, newest first, searched, followed and exported.
import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { Failure, get, query, words } from "../api";
import { millis, plural } from "../format";
import { write } from "../json";
import { generation, listen } from "../live";
import { amend, place, to } from "../router";
import { summaries } from "../store";
import { Table, type Column } from "../table";
import type { LogRow } from "../types";
import { At, Badge, Button, Empty, Head, Icon, Id, Panel, Skeleton, StateChip, Trouble } from "../ui";
import { MachineFilter } from "./filter";
import { FirstMachine } from "./first";

const COLUMNS: Column<LogRow>[] = [
    { name: "Position", width: "5.5rem", right: true, cell: (row) => <span class="muted">{row.position}</span>, extra: true },
    { name: "Time", width: "9.5rem", cell: (row) => <At time={row.at} /> },
    { name: "Machine", width: "minmax(5rem, 0.8fr)", cell: (row) => <a class="clip quiet-link" href={to.machine(row.machine)}>{row.machine}</a>, extra: true },
    { name: "Instance", width: "minmax(6rem, 1.4fr)", cell: (row) => <a class="clip" href={to.instance(row.machine, row.id)}><Id>{row.id}</Id></a>, below: true },
    { name: "Event", width: "minmax(5rem, 1fr)", cell: (row) => <span class="clip event-name">{row.type === "start" ? <em>start</em> : (row.event ?? <em>stopped manually</em>)}</span> },
    { name: "Led to", width: "minmax(6rem, 1fr)", cell: (row) => <StateChip machine={row.machine} name={row.to ?? row.state ?? ""} stopped={row.outcome === "stop"} /> },
    { name: "Payload", width: "minmax(6rem, 2fr)", cell: (row) => <Detail row={row} />, extra: true },
];

function Detail({ row }: { row: LogRow }): JSX.Element {
    const data = row.payload ?? (row.type === "start" ? row.data : null);
    const text = data && Object.keys(data).length ? write(data) : "";
    return (
        <>
            {row.timeout && <Badge tone="info">timeout</Badge>}
            <code class="clip payload" title={text}>{text}</code>
        </>
    );
}

interface Filter {
    machine: string | null;
    id: string | null;
    event: string | null;
    state: string | null;
    since: string | null;
    until: string | null;
}

const NAMES: (keyof Filter)[] = ["machine", "id", "event", "state", "since", "until"];

function filterOf(search: URLSearchParams): Filter {
    return Object.fromEntries(NAMES.map((name) => [name, search.get(name)])) as unknown as Filter;
}

/** Whether a new row belongs into the list, as the server would decide. */
function fits(filter: Filter, row: LogRow): boolean {
    return (
        (!filter.machine || row.machine === filter.machine) &&
        (!filter.id || row.id === filter.id) &&
        (!filter.event || row.event === filter.event) &&
        (!filter.state || (row.to ?? row.state) === filter.state) &&
        (!filter.since || millis(row.at) >= millis(filter.since)) &&
        !filter.until
    );
}

const EMPTY_PAGES_MAX = 20;
/** What a tab keeps while it is left open for days; what is older is loaded again when wanted. */
const ROWS_MAX = 20000;
/** Who has scrolled further than this reads: nothing moves below the eyes. */
const TOP = 240;

/** The rows that were loaded, and a way to load more; new ones are put in front as they come. */
function useLog(filter: Filter) {
    const key = JSON.stringify([filter, generation.value]);
    const [rows, setRows] = useState<LogRow[]>([]);
    const [next, setNext] = useState<number | null>(null);
    const [loading, setLoading] = useState(true);
    const [error, setError] = useState<string | null>(null);
    const [absent, setAbsent] = useState(false);
    const [held, setHeld] = useState<LogRow[]>([]);
    const load = async (after: number | null, signal?: AbortSignal) => {
        setLoading(true);
        try {
            for (let i = 0; i < EMPTY_PAGES_MAX; i++) {
                const values = { ...filter, backward: true, after, limit: 200 };
                const page = await get<{ items: LogRow[]; next: number | null; position: number }>("/log" + query(values), { signal });
                // What came live while this was asked for is in both.
                setRows((old) => old.concat(page.items.filter((row) => !old.length || row.position < old[old.length - 1].position)));
                after = page.next;
                setNext(after);
                if (after === null || page.items.length) break;
            }
            setError(null);
        } catch (failure) {
            if (signal?.aborted) return;
            setAbsent(failure instanceof Failure && failure.code === "UNSUPPORTED");
            setError(words(failure));
        }
        setLoading(false);
    };
    const put = (news: LogRow[]) =>
        setRows((old) => {
            const newest = old[0]?.position ?? 0;
            const added = news.filter((row) => row.position > newest).reverse();
            const all = added.length ? added.concat(old) : old;
            if (all.length > ROWS_MAX) setNext(all[ROWS_MAX - 1].position);
            return all.length > ROWS_MAX ? all.slice(0, ROWS_MAX) : all;
        });
    const release = () => {
        put(held);
        setHeld([]);
    };
    useEffect(() => {
        if (!held.length) return;
        const scrolled = () => scrollY <= TOP && release();
        addEventListener("scroll", scrolled, { passive: true });
        return () => removeEventListener("scroll", scrolled);
    }, [held]);
    useEffect(() => {
        const abort = new AbortController();
        setRows([]);
        setNext(null);
        setHeld([]);
        let waiting: LogRow[] | null = [];
        const stop = listen((news) => {
            const good = news.filter((row) => fits(filter, row));
            if (!good.length) return;
            if (waiting) waiting.push(...good);
            else if (scrollY > TOP) setHeld((old) => old.concat(good));
            else put(good);
        });
        void load(null, abort.signal).then(() => {
            put(waiting ?? []);
            waiting = null;
        });
        return () => {
            abort.abort();
            stop();
        };
    }, [key]);
    return { rows, held, next, loading, error, absent, load, release };
}

function save(rows: LogRow[]): void {
    const text = [...rows].reverse().map((row) => write(row) + "\n").join("");
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([text], { type: "application/jsonl" }));
    link.download = "journal.jsonl";
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

function Text({ name, label, wide }: { name: keyof Filter; label: string; wide?: boolean }): JSX.Element {
    return (
        <input
            type="search"
            class={wide ? "wide" : undefined}
            aria-label={label}
            placeholder={label}
            autocomplete="off"
            spellcheck={false}
            value={place.value.search.get(name) ?? ""}
            onChange={(event) => amend({ [name]: event.currentTarget.value.trim() })}
        />
    );
}

/** A time of this place; the address has it in UTC. */
function Time({ name, label }: { name: "since" | "until"; label: string }): JSX.Element {
    const value = place.value.search.get(name);
    const local = value ? new Date(Date.parse(value) - new Date().getTimezoneOffset() * 60000).toISOString().slice(0, 19) : "";
    return (
        <label class="time">
            <span>{label}</span>
            <input
                type="datetime-local"
                step="1"
                value={local}
                onChange={(event) => {
                    const at = Date.parse(event.currentTarget.value);
                    amend({ [name]: Number.isNaN(at) ? null : new Date(at).toISOString() });
                }}
            />
        </label>
    );
}

export function Journal(): JSX.Element {
    const filter = filterOf(place.value.search);
    const { rows, held, next, loading, error, absent, load, release } = useLog(filter);
    const end = useRef<HTMLDivElement>(null);
    const filtered = NAMES.some((name) => filter[name]);
    const more = useRef<() => void>(() => undefined);
    more.current = () => {
        if (next !== null && !loading) void load(next);
    };
    useEffect(() => {
        const observer = new IntersectionObserver(([entry]) => entry.isIntersecting && more.current(), { rootMargin: "600px" });
        observer.observe(end.current!);
        return () => observer.disconnect();
    }, [next, loading]);
    return (
        <>
            <Head title="Journal" below={rows.length ? `${plural(rows.length, "event")} loaded, newest first` : "Every event of every instance, newest first."}>
                {filtered && (
                    <Button kind="quiet" onClick={() => amend(Object.fromEntries(NAMES.map((name) => [name, null])))}>
                        Clear filters
                    </Button>
                )}
                <Button onClick={() => save(rows)} disabled={!rows.length}>
                    <Icon name="download" /> Export JSON Lines
                </Button>
            </Head>
            <div class="filter-bar">
                <MachineFilter />
                <Text name="id" label="instance id" wide />
                <Text name="event" label="event" />
                <States />
                <Time name="since" label="from" />
                <Time name="until" label="to" />
            </div>
            {held.length > 0 && (
                <div class="fresh-rows">
                    <Button
                        kind="primary"
                        onClick={() => {
                            release();
                            scrollTo(0, 0);
                        }}
                    >
                        {plural(held.length, "new event")}
                    </Button>
                </div>
            )}
            <Panel flush>
                {error && !absent && <Trouble text={error} retry={() => void load(next)} />}
                {absent && <FirstMachine title="No machines, so no events" />}
                {rows.length > 0 && <Table label="Events" columns={COLUMNS} rows={rows} id={(row) => row.position} link={(row) => to.instance(row.machine, row.id)} />}
                {rows.length === 0 && loading && <Skeleton rows={10} />}
                {rows.length === 0 && !loading && !error && (
                    <Empty title={filtered ? "No matching events." : "Nothing has happened yet."}>{filtered ? "Remove a filter, or widen the time range." : "Events appear here as they are committed."}</Empty>
                )}
                <div ref={end} class="end">
                    {rows.length > 0 && (next === null ? "No earlier events." : loading ? "Loading…" : <Button onClick={() => more.current()}>Show more</Button>)}
                </div>
            </Panel>
        </>
    );
}

function States(): JSX.Element {
    const search = place.value.search;
    const machine = search.get("machine");
    const states = new Set<string>();
    for (const summary of summaries.value ?? [])
        if (!machine || summary.name === machine) for (const state of summary.states) states.add(state.name);
    return (
        <select aria-label="State it led to" value={search.get("state") ?? ""} onChange={(event) => amend({ state: event.currentTarget.value })}>
            <option value="">every state</option>
            {[...states].sort().map((state) => (
                <option key={state} value={state}>
                    {state}
                </option>
            ))}
        </select>
    );
}
