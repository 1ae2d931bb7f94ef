// SPDX-License-Identifier: MIT
// Copyright the detent authors

// One worker: what it shall be beside what it is, why it is in its state, and what it has done.
import type { ComponentChildren, JSX } from "preact";
import { open, path, post } from "../api";
import { useDeltas } from "../deltas";
import { count, plural, span } from "../format";
import { write } from "../json";
import { useList, useResource } from "../resource";
import { go, to } from "../router";
import type { Happened, Worker, WorkerDetail } from "../types";
import { Action, Ago, At, Badge, classes, Empty, Head, Icon, Loaded, Panel, Since } from "../ui";
import { Freshness, Marks, PhaseBadge, stateOf, WorkerTree } from "./workers";

const OPTIONS = { on: ["workers", "tasks"] as ("workers" | "tasks")[], every_ms: 200, poll_ms: 2000 };

function place(id: string, ...more: string[]): string {
    return path("workers", id.replaceAll("/", "~"), ...more);
}

export function WorkerView({ id }: { id: string }): JSX.Element {
    useDeltas();
    const worker = useResource<WorkerDetail>(place(id), OPTIONS);
    const data = worker.data;
    const name = id.slice(id.lastIndexOf("/") + 1);
    return (
        <>
            <Head above={<Above id={id} />} title={name} below={data && <Below worker={data} />}>
                {data && <Orders worker={data} refresh={worker.refresh} />}
            </Head>
            <Loaded
                of={worker}
                rows={8}
                missing={
                    <Panel>
                        <Empty title={`There is no worker “${id}”.`}>
                            <a href={to.workers()}>All workers</a>
                        </Empty>
                    </Panel>
                }
            >
                {(detail) => (
                    <>
                        <Notices worker={detail} />
                        <Sides worker={detail} />
                        <div class="columns even">
                            <Facts worker={detail} />
                            <div class="stacked">
                                <Counts worker={detail} />
                                <States worker={detail} />
                                <Metrics worker={detail} />
                            </div>
                        </div>
                        {detail.children > 0 && <Children worker={detail} />}
                        <History id={detail.id} />
                    </>
                )}
            </Loaded>
        </>
    );
}

/** The way from the root to it. */
function Above({ id }: { id: string }): JSX.Element {
    const names = id.split("/").slice(0, -1);
    return (
        <>
            <a href={to.workers()}>Workers</a>
            {names.map((name, i) => (
                <span key={i}>
                    {" / "}
                    <a href={to.worker(names.slice(0, i + 1).join("/"))}>{name}</a>
                </span>
            ))}
        </>
    );
}

function Below({ worker }: { worker: WorkerDetail }): JSX.Element {
    return (
        <span class="instance-below">
            <PhaseBadge worker={worker} />
            {stateOf(worker) && <span class="mono">{worker.state}</span>}
            <span>{worker.reason}</span>
            <Marks worker={worker} />
        </span>
    );
}

function Orders({ worker, refresh }: { worker: WorkerDetail; refresh: () => void }): JSX.Element {
    const order = (what: string) => async () => {
        await post(place(worker.id, "order"), { order: what });
        refresh();
    };
    const remove = async () => {
        await open(place(worker.id), { method: "DELETE" });
        go(to.workers());
    };
    return (
        <>
            <Action label="Restart" ask="It stops and restarts." run={order("restart")} />
            {worker.disabled ? (
                <Action label="Enable" ask="It runs again." run={order("enable")} />
            ) : (
                <Action label="Disable" ask="It stops until it is started again." run={order("disable")} />
            )}
            {worker.by_hand && <Action label="Remove" kind="danger" ask="It stops permanently." run={remove} />}
        </>
    );
}

/** What keeps it from being as it should, in sentences. */
function Notices({ worker }: { worker: WorkerDetail }): JSX.Element | null {
    const all: ComponentChildren[] = [];
    if (worker.degraded_by) all.push(<>Its config was refused, and the last good one counts: {worker.degraded_by}</>);
    if (worker.circuit_open) all.push("Its circuit is open: its children failed too often and are paused. It retries automatically.");
    if (worker.freshness === "stale")
        all.push(<>What was observed is too old: it is paused until it is observed again. {plural(worker.counts.collector_restarts, "restart")} of its collector so far.</>);
    if (worker.life === "down") all.push("It stays down: it was restarted too often. Use Restart to try again.");
    if (!all.length) return null;
    return (
        <ul class="notices">
            {all.map((text, i) => (
                <li key={i}>
                    <Icon name="alert" />
                    <span>{text}</span>
                </li>
            ))}
        </ul>
    );
}

function Value({ value }: { value: unknown }): JSX.Element {
    if (value === undefined) return <span class="muted">–</span>;
    if (value === "") return <span class="muted">empty</span>;
    return <span class="value">{typeof value === "string" ? value : write(value)}</span>;
}

/** Desired and observed, field by field; what differs comes first and is marked. */
function Sides({ worker }: { worker: WorkerDetail }): JSX.Element {
    const { desired, observed, gap } = worker;
    const names = [...new Set([...Object.keys(gap), ...Object.keys(desired), ...Object.keys(observed)])];
    const differing = Object.keys(gap).length;
    return (
        <Panel
            title="Desired and observed"
            flush
            aside={differing ? <Badge tone="warn">{plural(differing, "difference")}</Badge> : <span class="muted">observed <Ago time={worker.observed_at} /></span>}
        >
            {names.length === 0 ? (
                <Empty title="This kind has no fields.">It has no config and observes only its existence.</Empty>
            ) : (
                <table class="plain-table sides">
                    <thead>
                        <tr>
                            <th scope="col">Field</th>
                            <th scope="col">Desired</th>
                            <th scope="col">Observed</th>
                        </tr>
                    </thead>
                    <tbody>
                        {names.map((name) => (
                            <tr key={name} class={classes(name in gap && "differs")}>
                                <th scope="row">
                                    <code>{name}</code> {name in gap && <Badge tone="warn">differs</Badge>}
                                </th>
                                <td><Value value={desired[name]} /></td>
                                <td><Value value={observed[name]} /></td>
                            </tr>
                        ))}
                    </tbody>
                </table>
            )}
        </Panel>
    );
}

function List({ rows }: { rows: [string, ComponentChildren][] }): JSX.Element {
    return (
        <dl class="data">
            {rows.map(([name, value]) => (
                <div key={name}>
                    <dt>{name}</dt>
                    <dd>{value}</dd>
                </div>
            ))}
        </dl>
    );
}

function Facts({ worker }: { worker: WorkerDetail }): JSX.Element {
    return (
        <Panel title="Worker" flush>
            <List
                rows={[
                    ["Kind", <a key="k" href={to.workers({ kind: worker.worker_kind })}>{worker.worker_kind}</a>],
                    ["In its state", <Since key="s" time={worker.since} />],
                    ["Observed", worker.freshness === "stale" ? <Freshness key="f" worker={worker} /> : <Ago key="f" time={worker.observed_at} />],
                    ["Wanted", worker.shutdown_wanted ? "to go, or to begin anew" : worker.stop_wanted ? "to rest" : "to run"],
                    ["Action", worker.action_pending ? "one is running" : "none is running"],
                    ["Circuit", worker.circuit_open ? "open: paused" : "closed"],
                    ["Made", worker.by_hand ? "by hand" : worker.parent === null ? "with the daemon" : "by its parent or detent.yaml"],
                    ["Path", <span key="p" class="mono value">{worker.path}</span>],
                ]}
            />
        </Panel>
    );
}

function Counts({ worker }: { worker: WorkerDetail }): JSX.Element {
    const { counts } = worker;
    return (
        <Panel title="Counts" flush>
            <List
                rows={[
                    ["Changes of state", count(counts.transitions)],
                    ["Observations", count(counts.observations)],
                    ["Actions", `${count(counts.actions_done)} done, ${count(counts.actions_failed)} failed${counts.failures ? `, ${count(counts.failures)} in a row` : ""}`],
                    ["Restarts", count(counts.restarts)],
                    ["Restarts of its collector", `${count(counts.collector_restarts)} since the last observation`],
                    ["Begun", `${plural(counts.startups, "time")} over all runs`],
                ]}
            />
        </Panel>
    );
}

/** How often it came to each state, and how long it was there. */
function States({ worker }: { worker: WorkerDetail }): JSX.Element {
    const names = Object.keys(worker.states ?? {});
    const all = names.reduce((sum, name) => sum + Number(worker.states[name].total_ms), 0) || 1;
    return (
        <Panel title="States" flush>
            <List
                rows={names.map((name) => {
                    const { entered, total_ms } = worker.states[name];
                    return [name, `${span(Number(total_ms))}, ${Math.round((Number(total_ms) / all) * 100)} %, ${plural(Number(entered), "time")}`];
                })}
            />
        </Panel>
    );
}

function Metrics({ worker }: { worker: WorkerDetail }): JSX.Element | null {
    const names = Object.keys(worker.metrics).sort();
    if (!names.length) return null;
    return (
        <Panel title="Metrics" flush>
            <List rows={names.map((name) => [name, count(worker.metrics[name])])} />
        </Panel>
    );
}

function Children({ worker }: { worker: WorkerDetail }): JSX.Element {
    const list = useList<Worker>("/workers", { below: worker.id }, OPTIONS, 500);
    return (
        <Panel title="Below it" flush aside={<span class="muted">{plural(worker.children, "child", "children")}</span>}>
            <Loaded of={list} rows={3}>
                {(page) => <WorkerTree workers={page.items.filter((one) => one.id !== worker.id)} label={`Below ${worker.name}`} top={worker.depth + 1} />}
            </Loaded>
        </Panel>
    );
}

function History({ id }: { id: string }): JSX.Element {
    const history = useResource<{ items: Happened[] }>(place(id, "history"), OPTIONS);
    return (
        <Panel title="History" flush aside={<span class="muted">of this run of the daemon</span>}>
            <Loaded of={history} rows={4}>
                {({ items }) =>
                    items.length ? (
                        <ul class="happened">
                            {items.map((row, i) => (
                                <li key={items.length - i}>
                                    <At time={row.at} />
                                    <What row={row} />
                                    <span class="why">{row.reason}</span>
                                </li>
                            ))}
                        </ul>
                    ) : (
                        <Empty title="Nothing has happened yet." />
                    )
                }
            </Loaded>
        </Panel>
    );
}

const ENDS: Record<string, string> = { OK: "done", TIMEOUT: "timed out", CANCELLED: "cancelled" };

function What({ row }: { row: Happened }): JSX.Element {
    if (row.action === undefined)
        return (
            <span class="happened-what">
                <span class="mono">{row.from}</span> → <span class="mono strong">{row.to}</span>
            </span>
        );
    const result = row.result ?? "OK";
    return (
        <span class="happened-what" title={result}>
            <Badge tone={result === "OK" ? "good" : "bad"}>{ENDS[result] ?? "failed"}</Badge>
            <span class="mono">{row.action}</span>
            <span class="muted">{count(row.took_ms ?? 0)} ms</span>
        </span>
    );
}

