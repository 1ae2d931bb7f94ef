// SPDX-License-Identifier: MIT
// Copyright the detent authors

// Workers: the tree of them, with phase, reason, and how old what they have seen is.
import { signal } from "@preact/signals";
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { useDeltas } from "../deltas";
import { amend, place, to } from "../router";
import { useList } from "../resource";
import { Table, type Column } from "../table";
import type { Phase, Worker } from "../types";
import { Badge, Button, Empty, Head, ListEnd, Loaded, Panel, Segmented, Since } from "../ui";
import { FirstWorker } from "./first";

const PHASES: Phase[] = ["running", "starting", "degraded", "stopping", "stopped"];
const ROWS = 2000;

const TONES: Record<Phase, string> = { running: "good", starting: "info", degraded: "bad", stopping: "warn", stopped: "quiet" };

/** Workers whose children are not shown; kept while the page is. */
const folded = signal<ReadonlySet<string>>(new Set());
/** Kinds that were seen, for the choice of one. */
const kinds = new Set<string>();

export function PhaseBadge({ worker }: { worker: Worker }): JSX.Element {
    return <Badge tone={TONES[worker.phase]}>{worker.phase}</Badge>;
}

/** The state, where its name says more than the phase. */
export function stateOf(worker: Worker): string | null {
    return worker.state === worker.phase ? null : worker.state.replaceAll("_", " ");
}

/** What is the matter with it, in one word each. */
export function Marks({ worker }: { worker: Worker }): JSX.Element {
    return (
        <>
            {worker.circuit_open && <Badge tone="bad">paused</Badge>}
            {worker.degraded_by && <Badge tone="warn">config refused</Badge>}
            {worker.life !== "live" && <Badge tone={worker.life === "down" ? "bad" : "info"}>{worker.life}</Badge>}
            {worker.disabled && <Badge>disabled</Badge>}
            {worker.counts.failures > 0 && <Badge tone="warn">{worker.counts.failures}× failed</Badge>}
            {worker.by_hand && <Badge tone="info">by hand</Badge>}
        </>
    );
}

export function Freshness({ worker }: { worker: Worker }): JSX.Element {
    if (worker.freshness === "stale")
        return (
            <Badge tone="bad">
                <span>stale <Since time={worker.observed_at} /></span>
            </Badge>
        );
    if (worker.freshness === "fresh") return <span class="muted"><Since time={worker.observed_at} /></span>;
    return <span class="muted">never</span>;
}

function fold(id: string): void {
    const all = new Set(folded.value);
    if (!all.delete(id)) all.add(id);
    folded.value = all;
}

function Name({ worker, flat, top }: { worker: Worker; flat: boolean; top: number }): JSX.Element {
    const closed = folded.value.has(worker.id);
    const depth = flat ? 0 : worker.depth - top;
    return (
        <span class="worker-name" style={{ "--depth": String(Math.min(depth, 12)) }}>
            {!flat &&
                (worker.children > 0 ? (
                    <button type="button" class="twist" aria-expanded={!closed} aria-label={`${closed ? "Show" : "Hide"} what is below ${worker.name}`} onClick={() => fold(worker.id)}>
                        <i />
                    </button>
                ) : (
                    <span class="twist" />
                ))}
            {flat && worker.parent && <span class="muted clip worker-above">{worker.parent}/</span>}
            <a class="strong clip" href={to.worker(worker.id)} title={worker.id}>
                {worker.name}
            </a>
            <span class="type clip wide-only">{worker.worker_kind}</span>
        </span>
    );
}

function columns(flat: boolean, top: number): Column<Worker>[] {
    return [
        { name: "Worker", width: "minmax(9rem, 2fr)", wraps: true, cell: (w) => <Name worker={w} flat={flat} top={top} /> },
        {
            name: "Phase", width: "minmax(6rem, 1.1fr)",
            cell: (w) => (
                <>
                    <PhaseBadge worker={w} />
                    <span class="muted clip wide-only" title={w.state}>{stateOf(w)}</span>
                </>
            ),
        },
        {
            name: "Reason", width: "minmax(7rem, 2fr)", below: true, wraps: true,
            cell: (w) => (
                <>
                    <span class="wide-only worker-marks"><Marks worker={w} /></span>
                    <span class="clip" title={w.degraded_by ?? w.reason}>{w.degraded_by ?? w.reason}</span>
                </>
            ),
        },
        { name: "In state", width: "5.5rem", right: true, cell: (w) => <Since time={w.since} />, extra: true },
        { name: "Observed", width: "7rem", right: true, cell: (w) => <Freshness worker={w} />, extra: true },
    ];
}

/** Those that are in sight: not below one that is folded. The list has parents before children. */
function unfolded(workers: Worker[]): Worker[] {
    const closed = folded.value;
    const hidden = new Set<string>();
    return workers.filter((worker) => {
        const gone = worker.parent !== null && (hidden.has(worker.parent) || closed.has(worker.parent));
        if (gone) hidden.add(worker.id);
        return !gone;
    });
}

/** Up and down go from row to row, left and right fold. */
function pressed(event: KeyboardEvent): void {
    const row = (event.target as Element).closest<HTMLElement>("[role=row]");
    const twist = row?.querySelector<HTMLButtonElement>("button.twist");
    const step = { ArrowDown: "nextElementSibling", ArrowUp: "previousElementSibling" }[event.key] as "nextElementSibling" | undefined;
    if (!row || event.ctrlKey || event.metaKey || event.altKey) return;
    if (step) row[step]?.querySelector<HTMLElement>("a")?.focus();
    else if (event.key === "ArrowLeft" && twist?.ariaExpanded === "true") twist.click();
    else if (event.key === "ArrowRight" && twist?.ariaExpanded === "false") twist.click();
    else return;
    event.preventDefault();
}

interface TreeProps {
    workers: Worker[];
    label: string;
    flat?: boolean;
    /** The depth that stands at the left. */
    top?: number;
}

export function WorkerTree({ workers, label, flat = false, top = 0 }: TreeProps): JSX.Element {
    const rows = flat ? workers : unfolded(workers);
    return (
        <div class="worker-tree" onKeyDown={pressed}>
            <Table
                label={label}
                columns={columns(flat, top)}
                rows={rows}
                id={(worker) => worker.id}
                link={(worker) => to.worker(worker.id)}
                mark={(worker) => (worker.stop_wanted ? "resting" : null)}
            />
        </div>
    );
}

function fitsText(worker: Worker, text: string): boolean {
    return [worker.id, worker.worker_kind, worker.state, worker.reason].some((part) => part.toLowerCase().includes(text));
}

function Filters({ text, onText }: { text: string; onText: (text: string) => void }): JSX.Element {
    const search = place.value.search;
    const kind = search.get("kind") ?? "";
    const names = [...kinds].sort();
    if (kind && !names.includes(kind)) names.push(kind);
    return (
        <div class="filter-bar">
            <input type="search" aria-label="Search" placeholder="Name, kind, state, reason" value={text} onInput={(event) => onText(event.currentTarget.value)} />
            <select aria-label="Phase" value={search.get("phase") ?? ""} onChange={(event) => amend({ phase: event.currentTarget.value })}>
                <option value="">every phase</option>
                {PHASES.map((phase) => (
                    <option key={phase} value={phase}>{phase}</option>
                ))}
            </select>
            <select aria-label="Kind" value={kind} onChange={(event) => amend({ kind: event.currentTarget.value })}>
                <option value="">every kind</option>
                {names.map((name) => (
                    <option key={name} value={name}>{name}</option>
                ))}
            </select>
            <Segmented
                label="Which"
                value={search.get("unwell") === "true" ? "unwell" : "all"}
                options={[["all", "All"], ["unwell", "Not well"]]}
                onChange={(value) => amend({ unwell: value === "unwell" ? true : null })}
            />
        </div>
    );
}

export function Workers(): JSX.Element {
    const search = place.value.search;
    const [text, setText] = useState("");
    const filter = { phase: search.get("phase"), kind: search.get("kind"), unwell: search.get("unwell") };
    const filtered = Object.values(filter).some(Boolean);
    useDeltas();
    const list = useList<Worker>("/workers", filter, { on: ["workers", "tasks"], every_ms: 200, poll_ms: 3000 }, ROWS);
    for (const worker of list.data?.items ?? []) kinds.add(worker.worker_kind);
    const wanted = text.trim().toLowerCase();
    const parents = (list.data?.items ?? []).filter((worker) => worker.children > 0 && worker.parent !== null).map((worker) => worker.id);
    const closed = parents.length > 0 && parents.every((id) => folded.value.has(id));
    return (
        <>
            <Head title="Workers" below="Each worker reconciles a part of the world with its config: desired state, observed state, and the actions between them.">
                {!filtered && !wanted && parents.length > 0 && (
                    <Button onClick={() => (folded.value = new Set(closed ? [] : parents))}>{closed ? "Unfold all" : "Fold all"}</Button>
                )}
            </Head>
            <Panel flush>
                {!list.unsupported && <Filters text={text} onText={setText} />}
                <Loaded of={list} rows={8} absent={<FirstWorker />}>
                    {(page) => {
                        const shown = wanted ? page.items.filter((worker) => fitsText(worker, wanted)) : page.items;
                        return (
                            <>
                                {shown.length ? (
                                    <WorkerTree workers={shown} label="Workers" flat={filtered || wanted !== ""} />
                                ) : (
                                    <Empty title="No matching workers." />
                                )}
                                {!filtered && !wanted && page.items.length < 2 && <FirstWorker />}
                                <ListEnd page={page} more={list.more} />
                            </>
                        );
                    }}
                </Loaded>
            </Panel>
        </>
    );
}

