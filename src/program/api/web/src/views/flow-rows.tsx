// SPDX-License-Identifier: MIT
// Copyright the detent authors

// Rows of a flow in tables: live, from a position, rejected ones, and the facts of its life.
import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { get, path, query, words, type Query } from "../api";
import { worded } from "../flow-graph";
import { count, millis, plural } from "../format";
import { write } from "../json";
import { amend, go, place, to } from "../router";
import { useResource } from "../resource";
import { Table, type Column } from "../table";
import { isRow, useTap, type Entry } from "../tap";
import type { FlowDetail, FlowRow, FlowRows, FlowStage } from "../types";
import { At, Badge, Button, Empty, Fold, Loaded, Panel, Skeleton, Trouble } from "../ui";

function text(value: unknown): string {
    return typeof value === "string" ? value : write(value);
}

function Cell({ value }: { value: unknown }): JSX.Element {
    if (value === null || value === undefined) return <span class="muted">–</span>;
    return (
        <span class="clip value mono" title={text(value)}>
            {text(value)}
        </span>
    );
}

const FIELDS_MAX = 8;

/** The fields of the rows as columns, if they are few and of one record; null: not. */
function fieldsOf(entries: Entry[]): string[] | null {
    const rows = entries.filter(isRow);
    const first = rows.find((row) => row.value);
    const names = first ? Object.keys(first.value!) : [];
    const alike = rows.every((row) => !row.value || row.stream === first!.stream);
    return alike && names.length > 0 && names.length <= FIELDS_MAX ? names : null;
}

function What({ row }: { row: FlowRow }): JSX.Element {
    if (row.kind === "rejected")
        return (
            <>
                <Badge tone="bad">{worded(row.why ?? "rejected")}</Badge> <span class="clip" title={row.text}>{row.text}</span>
            </>
        );
    if (row.kind === "end") return <Badge tone="info">{`end: ${row.end}, ${plural(row.rows ?? 0, "row")}`}</Badge>;
    if (row.kind === "fact")
        return (
            <>
                <Badge>{worded(row.fact ?? "fact")}</Badge> <span class="clip">{[row.stage, row.reason].filter(Boolean).join(": ")}</span>
            </>
        );
    if (row.error) return <span class="ill">{row.error}</span>;
    return <Cell value={row.value} />;
}

function Position({ entry }: { entry: Entry }): JSX.Element {
    if (!isRow(entry)) return <span class="remark">{entry.remark}</span>;
    return <span class="mono">{entry.position}</span>;
}

function columnsOf(entries: Entry[], mixed: boolean): Column<Entry>[] {
    const fields = mixed ? null : fieldsOf(entries);
    const row = (cell: (row: FlowRow) => JSX.Element | null) => (entry: Entry) => (isRow(entry) ? cell(entry) : null);
    const columns: Column<Entry>[] = [
        { name: "Position", width: "6.5rem", cell: (entry) => <Position entry={entry} /> },
        { name: "At", width: "7.5rem", cell: row(({ at }) => <At time={at} />), extra: true },
    ];
    if (mixed) columns.push({ name: "Stream", width: "minmax(5rem, 0.7fr)", cell: row(({ stream }) => <span class="clip mono" title={stream}>{stream}</span>) });
    if (!fields) return [...columns, { name: "Row", width: "minmax(8rem, 4fr)", cell: row((one) => <What row={one} />) }];
    return columns.concat(
        fields.map((name, i) => ({
            name, width: "minmax(4rem, 1fr)",
            cell: row((one) => (one.value && one.kind === "data" ? <Cell value={one.value[name]} /> : i === 0 ? <What row={one} /> : null)),
        })),
    );
}

/** In a box of its own, so that what comes moves nothing else. */
function RowTable({ entries, mixed, label }: { entries: Entry[]; mixed: boolean; label: string }): JSX.Element {
    return (
        <div class="flow-rows" tabIndex={0} role="region" aria-label={`${label}: table`}>
            <Table
                label={label}
                columns={columnsOf(entries, mixed)}
                rows={entries}
                id={(entry) => (isRow(entry) ? entry.position : entry.key)}
                mark={(entry) => (isRow(entry) ? null : "remarked")}
            />
        </div>
    );
}

function titleOf(stream: string | null): string {
    return stream === null ? "Rows of every stage" : `Rows of ${stream}`;
}

interface RowsProps {
    flow: FlowDetail;
    stream: string | null;
    /** An earlier one; null: the last. */
    run: number | null;
}

export function Rows({ flow, stream, run }: RowsProps): JSX.Element {
    const at = Number(place.value.search.get("at") ?? NaN);
    const from = Number.isSafeInteger(at) && at > 0 ? at : null;
    if (from !== null || run !== null) return <RowsFrom key={`${stream}~${run}~${from}`} flow={flow} stream={stream} run={run} from={from ?? 1} />;
    return <LiveRows flow={flow} stream={stream} />;
}

/** Where reading begins; Enter goes there. */
function From({ value }: { value: number | null }): JSX.Element {
    const [typed, setTyped] = useState(value === null ? "" : String(value));
    const good = /^[1-9][0-9]{0,15}$/.test(typed.trim());
    const submit = (event: Event) => {
        event.preventDefault();
        if (good || !typed.trim()) amend({ at: typed.trim() || null }, false);
    };
    return (
        <form onSubmit={submit} class="flow-from">
            <input type="search" inputMode="numeric" aria-label="From position" placeholder="From position" value={typed} aria-invalid={typed.trim() !== "" && !good} onInput={(event) => setTyped(event.currentTarget.value)} />
            <Button small type="submit" disabled={!good && typed.trim() !== ""}>Go</Button>
        </form>
    );
}

function LiveRows({ flow, stream }: { flow: FlowDetail; stream: string | null }): JSX.Element {
    const [paused, setPaused] = useState(false);
    const tap = useTap(flow.name, stream, paused, flow.journal?.acknowledged ?? 0);
    useEffect(() => setPaused(false), [stream]);
    const entries = tap.entries.filter((entry) => !isRow(entry) || entry.kind !== "fact");
    return (
        <Panel
            title={titleOf(stream)}
            flush
            aside={
                <span class="flow-aside">
                    <Badge tone={paused ? "warn" : tap.state === "live" ? "good" : undefined}>{paused ? "paused" : tap.state === "live" ? "following" : "not connected"}</Badge>
                    <Button small onClick={() => setPaused(!paused)} aria-pressed={paused}>{paused ? "Resume" : "Pause"}</Button>
                    <From value={null} />
                </span>
            }
        >
            {tap.error && <Trouble text={tap.error} />}
            <div class="flow-rows-place">
                {tap.state === "loading" && <Skeleton rows={6} />}
                {entries.length > 0 && <RowTable entries={entries} mixed={stream === null} label={titleOf(stream)} />}
                {tap.state !== "loading" && entries.length === 0 && <NoRows flow={flow} />}
            </div>
            {tap.before !== null && entries.length > 0 && (
                <div class="end">
                    <Button
                        onClick={() => {
                            setPaused(true);
                            void tap.earlier();
                        }}
                    >
                        Show earlier rows
                    </Button>
                </div>
            )}
        </Panel>
    );
}

function NoRows({ flow }: { flow: FlowDetail }): JSX.Element {
    if (flow.state === "ready") return <Empty title="No rows yet">The flow waits for its start: use Run.</Empty>;
    if (flow.durability === "memory" && flow.journal === null) return <Empty title="No rows">A flow in memory has rows only while it runs.</Empty>;
    return <Empty title="No rows yet">Rows appear here when they are acknowledged.</Empty>;
}

/** Pages in the order of the journal. */
function RowsFrom({ flow, stream, run, from }: RowsProps & { from: number }): JSX.Element {
    const [page, setPage] = useState<FlowRows | null>(null);
    const [error, setError] = useState<string | null>(null);
    const more = async (after: number) => {
        try {
            const next = await get<FlowRows>(path("flows", flow.name, "rows") + query({ stream, after, limit: 100, run }));
            setPage((old) => ({ ...next, items: [...(old?.items ?? []), ...next.items] }));
            setError(null);
        } catch (failure) {
            setError(words(failure));
        }
    };
    const first = useRef(more);
    useEffect(() => void first.current(from - 1), []);
    const items = page?.items.filter((row) => row.kind !== "fact") ?? [];
    return (
        <Panel
            title={`${titleOf(stream)} from position ${count(from)}${run === null ? "" : ` of run ${run}`}`}
            flush
            aside={
                <span class="flow-aside">
                    <Button small onClick={() => amend({ at: null, run: null })}>Follow the newest</Button>
                    <From value={from} />
                </span>
            }
        >
            {error && <Trouble text={error} retry={() => void more(page?.next ?? from - 1)} />}
            <div class="flow-rows-place">
                {!page && !error && <Skeleton rows={6} />}
                {items.length > 0 && <RowTable entries={items} mixed={stream === null} label={titleOf(stream)} />}
                {page && items.length === 0 && <Empty title="No rows from here on.">The journal ends at position {count(page.position)}.</Empty>}
            </div>
            <div class="end">{page && (page.next !== null ? <Button onClick={() => void more(page.next!)}>Show more</Button> : items.length > 0 && "No later rows yet.")}</div>
        </Panel>
    );
}

const REJECTED: Column<FlowRow>[] = [
    { name: "Position", width: "6.5rem", cell: (row) => <span class="mono">{row.position}</span> },
    { name: "At", width: "7.5rem", cell: (row) => <At time={row.at} />, extra: true },
    { name: "Stage", width: "minmax(5rem, 0.8fr)", cell: (row) => <span class="clip mono">{row.stream.split(".")[0]}</span> },
    {
        name: "Reason", width: "minmax(10rem, 2fr)", wraps: true, below: true,
        cell: (row) => (
            <>
                <Badge tone="bad">{worded(row.why ?? "")}</Badge> <span class="value">{row.text}</span>
            </>
        ),
    },
    { name: "Input", width: "minmax(8rem, 2fr)", cell: (row) => <Cell value={row.value} /> },
    {
        name: "Input at", width: "6.5rem", right: true,
        cell: (row) => (row.parent ? <button type="button" class="link mono" title="Show the rows from there" onClick={() => from(row.parent!)}>{row.parent}</button> : <span class="muted">–</span>),
    },
];

/** All rows from a position: what came of an input is after it. */
function from(position: number): void {
    amend({ at: position, tab: null, stage: null, edge: null }, false);
}

const REJECTED_SHOWN = 100;

/** Asked again only when the count of rejected rows has changed: to find few among many is work. */
function useRejected(flow: FlowDetail, values: Query | null, changed: number) {
    const target = values && path("flows", flow.name, "rows") + query({ ...values, backward: true, limit: REJECTED_SHOWN });
    const list = useResource<FlowRows>(target, { every_ms: 2000 });
    const before = useRef(changed);
    useEffect(() => {
        if (before.current !== changed) list.refresh();
        before.current = changed;
    }, [changed]);
    return list;
}

/** Rejected rows: those in the errors of a stage, and those that stayed in its stream, marked. */
export function Rejected({ flow, stage, run }: { flow: FlowDetail; stage: FlowStage | null; run: number | null }): JSX.Element {
    const changed = run === null ? (stage ?? flow).rejected : 0;
    const all = useRejected(flow, { kind: "rejected", stream: stage && `${stage.name}.errors`, run }, changed);
    const own = useRejected(flow, stage && stage.kind !== "sink" ? { kind: "rejected", stream: stage.name, run } : null, changed);
    const items = [...(all.data?.items ?? []), ...(own.data?.items ?? [])].sort((a, b) => b.position - a.position);
    return (
        <Panel title={stage ? `Rejected by ${stage.name}` : "Rejected rows"} flush aside={<span class="muted">{run === null ? `${count(changed)} in this run` : `of run ${run}`}, the newest first</span>}>
            <Loaded of={all} rows={4}>
                {() =>
                    items.length ? (
                        <Table label="Rejected rows" columns={REJECTED} rows={items} id={(row) => row.position} />
                    ) : (
                        <Empty title="No row was rejected.">Rows that a stage refuses appear here with the reason and their input.</Empty>
                    )
                }
            </Loaded>
        </Panel>
    );
}

const FACTS: Record<string, string> = {
    opened: "info", ready: "info", running: "good", stop_requested: "warn", draining: "warn", completed: "good", cancelled: "quiet", failed: "bad", aborted: "bad",
    stage_running: "good", stage_draining: "warn", stage_completed: "good", stage_cancelled: "quiet", stage_failed: "bad",
};
const IDLE_MS = 60000;

interface LifeProps {
    flow: FlowDetail;
    stage: string | null;
    run: number | null;
}

export function Life(props: LifeProps): JSX.Element {
    return props.run === null ? <LiveLife {...props} /> : <PastLife {...props} run={props.run} />;
}

function lifeOf(stage: string | null): string {
    return stage ? `Life of ${stage}` : "Life of the flow";
}

/** The newest first, with the time between them where it is long. */
function Facts({ flow, stage, entries }: { flow: FlowDetail; stage: string | null; entries: Entry[] }): JSX.Element {
    const facts = entries.filter((entry) => !isRow(entry) || !stage || entry.stage === stage || entry.stage === null);
    return (
        <>
            <ul class="happened flow-life">
                {facts.map((fact, i) => (isRow(fact) ? <Fact key={fact.position} flow={flow} fact={fact} before={facts[i + 1]} /> : <li key={fact.key} class="muted">{fact.remark}</li>))}
            </ul>
            {facts.length === 0 && <Empty title="It has not run yet." />}
        </>
    );
}

const FACTS_SHOWN = 500;

function PastLife({ flow, stage, run }: LifeProps & { run: number }): JSX.Element {
    const facts = useResource<FlowRows>(path("flows", flow.name, "facts") + query({ backward: true, limit: FACTS_SHOWN, run }));
    return (
        <Panel title={lifeOf(stage)} flush aside={<span class="muted">run {run}</span>}>
            <Loaded of={facts} rows={4}>
                {({ items }) => (items.length ? <Facts flow={flow} stage={stage} entries={items} /> : <Empty title="Nothing of this run is kept." />)}
            </Loaded>
        </Panel>
    );
}

function LiveLife({ flow, stage }: LifeProps): JSX.Element {
    const tap = useTap(flow.name, "system", false, 0);
    return (
        <Panel title={lifeOf(stage)} flush aside={<span class="muted">{flow.run === null ? "in memory" : `run ${flow.run}`}</span>}>
            {tap.error && <Trouble text={tap.error} />}
            {tap.state === "loading" ? <Skeleton rows={4} /> : <Facts flow={flow} stage={stage} entries={tap.entries} />}
            {tap.before !== null && (
                <div class="end">
                    <Button onClick={() => void tap.earlier()}>Show earlier facts</Button>
                </div>
            )}
        </Panel>
    );
}

function Fact({ flow, fact, before }: { flow: FlowDetail; fact: FlowRow; before: Entry | undefined }): JSX.Element {
    const idle = before && isRow(before) ? millis(fact.at) - millis(before.at) : 0;
    const figures = [fact.rows_in && `${count(fact.rows_in)} in`, fact.rows_out && `${count(fact.rows_out)} out`, fact.rejected && `${count(fact.rejected)} rejected`];
    return (
        <>
            <li>
                <At time={fact.at} />
                <span class="happened-what">
                    <Badge tone={FACTS[fact.fact ?? ""]}>{worded((fact.fact ?? "").replace(/^stage_/, ""))}</Badge>
                    {fact.stage ? <button type="button" class="link mono" onClick={() => go(to.flow(flow.name, { stage: fact.stage }))}>{fact.stage}</button> : <span class="strong">flow</span>}
                </span>
                <span class="why">{[fact.reason, figures.filter(Boolean).join(", ")].filter(Boolean).join(" · ")}</span>
            </li>
            {idle > IDLE_MS && (
                <li class="flow-idle">
                    <Fold ms={idle} />
                </li>
            )}
        </>
    );
}
