// SPDX-License-Identifier: MIT
// Copyright the detent authors

// One machine: its drawing with counts, its definition, its instances.
import type { JSX } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { get, Once, path, query, words } from "../api";
import { Diagram } from "../diagram";
import { dataOf, isValid, kindOf, recordOf, RecordForm, type Draft } from "../form";
import { count, plural, span } from "../format";
import { listen } from "../live";
import { before } from "../palette";
import { amend, go, place, to } from "../router";
import { useList, useResource } from "../resource";
import { normal } from "../store";
import { Table, type Column } from "../table";
import type { Finding, InstanceRow, LockRow, LogRow, Machine, MachineSummary, Page, StateCount } from "../types";
import { Ago, Badge, Button, Empty, Head, Id, ListEnd, Loaded, Panel, Segmented, Skeleton, StateChip, Trouble, Until } from "../ui";

function useMachine(name: string) {
    const resource = useResource<Machine>(path("machines", name), { every_ms: 5000 });
    const [machine, setMachine] = useState<Machine | null>(null);
    const text = resource.data ? JSON.stringify(resource.data) : null;
    useEffect(() => {
        if (resource.data) setMachine(normal(resource.data));
    }, [text]);
    return { resource, machine };
}

type Tab = "instances" | "locks" | "definition";

const TABS: [Tab, string][] = [["instances", "Instances"], ["locks", "Locks"], ["definition", "Definition"]];

export function MachineView({ name }: { name: string }): JSX.Element {
    const { resource, machine } = useMachine(name);
    const all = useResource<{ items: MachineSummary[] }>("/machines", { on: ["log"], when: (row) => row.machine === name, every_ms: 300, counts: true });
    const summary = all.data?.items.find((item) => item.name === name) ?? null;
    const [starting, setStarting] = useState(false);
    if (resource.missing)
        return (
            <>
                <Head above={<a href={to.machines()}>Machines</a>} title={name} />
                <Panel>
                    <Empty title={`There is no machine “${name}” here.`}>
                        <a href={to.machines()}>All machines</a>
                    </Empty>
                </Panel>
            </>
        );
    const state = place.value.search.get("state");
    const wanted = place.value.search.get("tab");
    const tab = TABS.find(([value]) => value === wanted)?.[0] ?? "instances";
    return (
        <>
            <Head above={<a href={to.machines()}>Machines</a>} title={name} below={summary && <Summary summary={summary} />}>
                {machine && <a class="button plain" href={to.simulator({ machine: name })}>Simulate</a>}
                {machine && (
                    <Button kind="primary" onClick={() => setStarting(!starting)} aria-expanded={starting}>
                        Start an instance
                    </Button>
                )}
            </Head>
            {resource.error && <Trouble text={resource.error} retry={resource.refresh} />}
            {starting && machine && <StartForm machine={machine} close={() => setStarting(false)} />}
            <Panel title="Diagram" aside={<span class="muted">click a state to see its instances</span>}>
                {machine ? (
                    <Diagram
                        machine={machine}
                        counts={new Map(summary?.states.map((s) => [s.name, s.instances]))}
                        selected={state}
                        onState={(chosen) => amend({ state: chosen === state ? null : chosen, prefix: null, tab: null })}
                    />
                ) : (
                    <Skeleton rows={4} />
                )}
            </Panel>
            {machine?.findings && machine.findings.length > 0 && <Findings findings={machine.findings} />}
            <div>
                <Segmented label="Show" value={tab} options={TABS} onChange={(value) => amend({ tab: value === "instances" ? null : value })} />
            </div>
            {tab === "instances" && <Instances name={name} states={summary?.states ?? []} />}
            {tab === "locks" && <Locks name={name} />}
            {tab === "definition" && machine && <Definition machine={machine} />}
        </>
    );
}

function Summary({ summary }: { summary: MachineSummary }): JSX.Element {
    return (
        <>
            version {summary.version}, {count(summary.active)} active, {count(summary.final)} final, {count(summary.stopped)} stopped,{" "}
            {plural(summary.timers, "timer")}, {plural(summary.effects, "open effect")}
            {summary.dead > 0 && (
                <>
                    {" "}
                    <a href={to.effects({ dead: true, machine: summary.name })}>
                        <Badge tone="bad">{count(summary.dead)} dead</Badge>
                    </a>
                </>
            )}
        </>
    );
}

function StartForm({ machine, close }: { machine: Machine; close: () => void }): JSX.Element {
    const [id, setId] = useState("");
    const [draft, setDraft] = useState<Draft>({});
    const [error, setError] = useState<string | null>(null);
    const [busy, setBusy] = useState(false);
    const once = useMemo(() => new Once(), []);
    const record = recordOf(machine, machine.data);
    const good = /^[A-Za-z0-9._:-]{1,128}$/.test(id);
    const submit = async (event: Event) => {
        event.preventDefault();
        setBusy(true);
        setError(null);
        try {
            const data = record ? { data: dataOf(record, draft) } : {};
            await once.post(path("machines", machine.name, "instances"), { id, ...data });
            go(to.instance(machine.name, id));
        } catch (failure) {
            setError(words(failure));
            setBusy(false);
        }
    };
    return (
        <Panel title={`Start ${machine.name}`}>
            <form onSubmit={submit} class="form">
                <div class="fields">
                    <div class="field">
                        <label for="start-id">id</label>
                        <input
                            id="start-id"
                            type="text"
                            autofocus
                            autocomplete="off"
                            spellcheck={false}
                            placeholder="o-1042"
                            value={id}
                            aria-invalid={id !== "" && !good}
                            onInput={(event) => setId(event.currentTarget.value)}
                        />
                        <span class="hint">{id !== "" && !good ? "letters, digits and . _ : -" : ""}</span>
                    </div>
                </div>
                {record && <RecordForm record={record} draft={draft} onChange={setDraft} />}
                {error && <Trouble text={error} />}
                <div class="form-foot">
                    <Button type="submit" kind="primary" busy={busy} disabled={!good || !isValid(record, draft)}>
                        Start
                    </Button>
                    <Button kind="quiet" onClick={close}>
                        Not now
                    </Button>
                    <span class="muted">Fields that are left empty are zero.</span>
                </div>
            </form>
        </Panel>
    );
}

const COLUMNS: Column<InstanceRow>[] = [
    {
        name: "Instance",
        width: "minmax(9rem, 2fr)",
        sort: (row) => row.id,
        cell: (row) => (
            <a class="clip" href={to.instance(row.machine, row.id)}>
                <Id>{row.id}</Id>
            </a>
        ),
        below: true,
    },
    { name: "State", width: "minmax(7rem, 1.2fr)", sort: (row) => row.state, cell: (row) => <StateChip machine={row.machine} name={row.state} stopped={row.stopped} /> },
    { name: "", width: "5.5rem", cell: (row) => row.stopped && <Badge>stopped</Badge>, extra: true },
    { name: "Events", width: "5rem", right: true, sort: (row) => row.sequence, cell: (row) => count(row.sequence), extra: true },
    { name: "Started", width: "8.5rem", right: true, sort: (row) => row.started_at, cell: (row) => <Ago time={row.started_at} />, extra: true },
    { name: "Moved", width: "8.5rem", right: true, sort: (row) => row.moved_at, cell: (row) => <Ago time={row.moved_at} /> },
];

const PAGE = 500;
/** A tab stays quick up to here; the list is narrowed down by its filters. */
const ROWS_MAX = 20000;

type Alive = "all" | "running" | "stopped";

/** The rows after an event: one that is there moves, one that is new comes to its place. */
function applied(rows: InstanceRow[], news: LogRow, filter: Filter, whole: boolean): InstanceRow[] {
    const state = news.to ?? news.state ?? "";
    const stopped = news.outcome === "stop";
    const known = rows.findIndex((row) => row.id === news.id);
    if (known >= 0) {
        const row = rows[known];
        if (news.sequence <= row.sequence) return rows;
        const moved = { ...row, state, stopped: row.stopped || stopped, sequence: news.sequence, moved_at: news.at };
        return rows.map((old, i) => (i === known ? moved : old));
    }
    const fits = news.id.startsWith(filter.prefix) && (!filter.state || filter.state === state) && filter.alive !== "stopped";
    const last = rows[rows.length - 1];
    if (news.type !== "start" || !fits || (!whole && !(last && news.id < last.id))) return rows;
    const { machine, id, sequence, at } = news;
    const made: InstanceRow = { machine, id, state, stopped, sequence, started_at: at, moved_at: at };
    const place = rows.findIndex((row) => row.id > id);
    return place < 0 ? rows.concat(made) : [...rows.slice(0, place), made, ...rows.slice(place)];
}

interface Filter {
    state: string | null;
    alive: Alive;
    prefix: string;
}

/** Pages that were loaded; rows that move are changed in place, so that the list does not jump. */
function useInstances(name: string, filter: Filter) {
    const key = JSON.stringify([name, filter]);
    const [rows, setRows] = useState<InstanceRow[]>([]);
    const [next, setNext] = useState<string | null>(null);
    const [loading, setLoading] = useState(true);
    const [error, setError] = useState<string | null>(null);
    const [moved, setMoved] = useState<ReadonlySet<string>>(new Set());
    const wholeRef = useRef(false);
    wholeRef.current = next === null && !loading;
    const stopped = { all: undefined, running: false, stopped: true }[filter.alive];
    const load = async (after: string | null, signal?: AbortSignal) => {
        setLoading(true);
        try {
            const values = { state: filter.state, stopped, after, limit: PAGE };
            const page = await get<Page<InstanceRow>>(path("machines", name, "instances") + query(values), { signal });
            const fits = page.items.filter((row) => row.id.startsWith(filter.prefix));
            const more = fits.length === page.items.length ? (page.next as string | null) : null;
            setRows((before) => (signal ? fits : before.concat(fits)));
            setNext(more);
            setError(null);
        } catch (failure) {
            if (signal?.aborted) return;
            setError(words(failure));
        }
        setLoading(false);
    };
    useEffect(() => {
        const abort = new AbortController();
        setRows([]);
        setNext(null);
        void load(filter.prefix ? before(filter.prefix) : null, abort.signal);
        const stop = listen((news) => {
            const own = news.filter((row) => row.machine === name);
            if (!own.length) return;
            setMoved(new Set(own.map((row) => row.id)));
            setRows((old) => own.reduce((rows, row) => applied(rows, row, filter, wholeRef.current), old));
        });
        return () => {
            abort.abort();
            stop();
        };
    }, [key]);
    return { rows, next, loading, error, moved, load };
}

/** How many fit the filters but for the prefix, which the daemon does not count by. */
function totalOf(states: StateCount[], state: string | null, alive: Alive): number {
    return states
        .filter((item) => !state || item.name === state)
        .reduce((sum, item) => sum + (alive === "stopped" ? 0 : item.instances) + (alive === "running" ? 0 : item.stopped), 0);
}

function Instances({ name, states }: { name: string; states: StateCount[] }): JSX.Element {
    const search = place.value.search;
    const state = search.get("state");
    const alive = (search.get("show") ?? "all") as Alive;
    const prefix = search.get("prefix") ?? "";
    const { rows, next, loading, error, moved, load } = useInstances(name, { state, alive, prefix });
    return (
        <Panel
            title="Instances"
            flush
            aside={
                <div class="filters">
                    <input
                        type="search"
                        aria-label="Ids that begin with"
                        placeholder="id begins with"
                        autocomplete="off"
                        spellcheck={false}
                        value={prefix}
                        onInput={(event) => amend({ prefix: event.currentTarget.value.trim() })}
                    />
                    <select aria-label="State" value={state ?? ""} onChange={(event) => amend({ state: event.currentTarget.value })}>
                        <option value="">every state</option>
                        {states.map((item) => (
                            <option key={item.name} value={item.name}>
                                {item.name}
                            </option>
                        ))}
                    </select>
                    <Segmented
                        label="Which"
                        value={alive}
                        options={[["all", "All"], ["running", "Not stopped"], ["stopped", "Stopped"]]}
                        onChange={(value) => amend({ show: value === "all" ? null : value })}
                    />
                </div>
            }
        >
            {error && <Trouble text={error} retry={() => void load(null)} />}
            {rows.length > 0 && (
                <Table
                    label="Instances"
                    columns={COLUMNS}
                    rows={rows}
                    id={(row) => row.id}
                    link={(row) => to.instance(row.machine, row.id)}
                    mark={(row) => (moved.has(row.id) ? "fresh" : null)}
                />
            )}
            {rows.length === 0 && loading && <Skeleton rows={5} />}
            {rows.length === 0 && !loading && !error && (
                <Empty title={state || prefix || alive !== "all" ? "No instance fits." : "No instance yet"}>
                    {state || prefix || alive !== "all" ? (
                        <button type="button" class="link" onClick={() => amend({ state: null, prefix: null, show: null })}>
                            Show all
                        </button>
                    ) : (
                        <code>detent start {name} first-1</code>
                    )}
                </Empty>
            )}
            {rows.length > 0 && (
                <div class="more">
                    <span class="muted">
                        {count(rows.length)}
                        {prefix === "" && <> of {count(Math.max(rows.length, totalOf(states, state, alive)))}</>}
                        {next !== null && rows.length > 1 && ", sorted among those shown"}
                    </span>
                    {next !== null && rows.length < ROWS_MAX && (
                        <Button busy={loading} onClick={() => void load(next)}>
                            Show more
                        </Button>
                    )}
                    {next !== null && rows.length >= ROWS_MAX && <span class="muted">Narrow the list down to see the rest.</span>}
                </div>
            )}
        </Panel>
    );
}

const LOCK_COLUMNS: Column<LockRow>[] = [
    {
        name: "Instance",
        width: "minmax(7rem, 2fr)",
        cell: (row) => (
            <a class="clip" href={to.instance(row.machine, row.id)}>
                <Id>{row.id}</Id>
            </a>
        ),
        below: true,
    },
    { name: "Held by", width: "minmax(6rem, 1.4fr)", cell: (row) => <span class="clip">{row.owner}</span> },
    { name: "Ends", width: "8rem", cell: (row) => (row.until ? <Until time={row.until} /> : <span class="muted">by hand</span>) },
    { name: "Fence", width: "5rem", right: true, cell: (row) => count(row.fence), extra: true },
];

function Locks({ name }: { name: string }): JSX.Element {
    const locks = useList<LockRow>("/locks", { machine: name }, { on: ["log"], when: (row) => row.machine === name, every_ms: 500, poll_ms: 3000 });
    return (
        <Panel title="Locks" flush>
            <Loaded of={locks} rows={3}>
                {(page) => (
                    <>
                        {page.items.length ? (
                            <Table label="Locks" columns={LOCK_COLUMNS} rows={page.items} id={(row) => row.id} link={(row) => to.instance(row.machine, row.id)} />
                        ) : (
                            <Empty title="No instance is locked.">While a lock is held, the instance accepts events of its holder only.</Empty>
                        )}
                        <ListEnd page={page} more={locks.more} />
                    </>
                )}
            </Loaded>
        </Panel>
    );
}

/** What the checker says about a definition that is served all the same. */
function Findings({ findings }: { findings: Finding[] }): JSX.Element {
    return (
        <Panel title="Findings" aside={<span class="muted">what detent check says</span>}>
            <ul class="stuck">
                {findings.map((finding, i) => (
                    <li key={i}>
                        <Badge tone={finding.severity === "error" ? "bad" : finding.severity === "warning" ? "warn" : undefined}>{finding.severity}</Badge>
                        <div class="grow">
                            <div>
                                {finding.text} <span class="type">{finding.rule}</span>
                            </div>
                            <div class="why">
                                line {finding.line}
                                {finding.hint && <>: {finding.hint}</>}
                            </div>
                        </div>
                    </li>
                ))}
            </ul>
        </Panel>
    );
}

function Definition({ machine }: { machine: Machine }): JSX.Element {
    return (
        <div class="columns even definition">
            <Panel title="Events" flush>
                <div class="plain-table-wrap">
                <table class="plain-table">
                    <thead>
                        <tr>
                            <th>Event</th>
                            <th>Payload</th>
                            <th>Taken in</th>
                            <th>Elsewhere</th>
                        </tr>
                    </thead>
                    <tbody>
                        {machine.events.map((event) => (
                            <tr key={event.name}>
                                <td>
                                    <span class="strong">{event.name}</span> {event.internal && <Badge>internal</Badge>}
                                </td>
                                <td class="muted">{event.payload ?? "–"}</td>
                                <td>{[...new Set(machine.transitions.filter((t) => t.event === event.name).map((t) => t.from))].join(", ") || "–"}</td>
                                <td class="muted">{event.unhandled}</td>
                            </tr>
                        ))}
                    </tbody>
                </table>
                </div>
            </Panel>
            <div class="stacked">
                <Panel title="Records" flush>
                    <div class="plain-table-wrap">
                    <table class="plain-table">
                        <tbody>
                            {machine.records.map((record) => (
                                <tr key={record.name}>
                                    <td class="strong">
                                        {record.name} {record.name === machine.data && <Badge tone="info">data</Badge>}
                                    </td>
                                    <td>
                                        {record.fields.map((field) => (
                                            <div key={field.name}>
                                                <span>{field.name}</span> <span class="type">{kindOf(field)}</span>{" "}
                                                {field.sensitive && <Badge tone="warn">sensitive</Badge>}
                                                {field.values && <div class="type">{field.values.join(", ")}</div>}
                                            </div>
                                        ))}
                                    </td>
                                </tr>
                            ))}
                        </tbody>
                    </table>
                    </div>
                    {machine.records.length === 0 && <Empty title="This machine keeps no data." />}
                </Panel>
                <Panel title="Effects and timeouts" flush>
                    <div class="plain-table-wrap">
                    <table class="plain-table">
                        <tbody>
                            {machine.effects.map((effect) => (
                                <tr key={effect.name}>
                                    <td class="strong">{effect.name}</td>
                                    <td>{effect.produces.length ? "answers " + effect.produces.join(", ") : <span class="muted">answers nothing</span>}</td>
                                </tr>
                            ))}
                            {machine.states.filter((s) => s.timeout).map((s) => (
                                <tr key={s.name}>
                                    <td class="strong">{s.name}</td>
                                    <td>after {span(s.timeout!.after_ms)} {s.timeout!.event}</td>
                                </tr>
                            ))}
                        </tbody>
                    </table>
                    </div>
                </Panel>
            </div>
        </div>
    );
}
