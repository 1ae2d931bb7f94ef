// SPDX-License-Identifier: MIT
// Copyright the detent authors

// One flow: its graph, live; a stage or an edge of it; rows, rejected rows, and its life.
import type { ComponentChildren, JSX } from "preact";
import { useEffect, useMemo } from "preact/hooks";
import { path, post } from "../api";
import { Diagram } from "../diagram";
import { creditTone, edgeKey, FlowGraph, stageTone, worded } from "../flow-graph";
import { minuteOf } from "../flow-rates";
import { count, plural, rate, short } from "../format";
import { write } from "../json";
import { amend, place, to } from "../router";
import { useResource } from "../resource";
import { may } from "../session";
import { normal } from "../store";
import type { FlowDetail, FlowEdge, FlowJournal, FlowStage, StageDefinition } from "../types";
import { Action, Badge, Button, Empty, Head, Icon, Loaded, Panel, Segmented, Since, Sparkline } from "../ui";
import { FlowState, isIll, reasonOf } from "./flows";
import { Life, Rejected, Rows } from "./flow-rows";

export function FlowView({ name }: { name: string }): JSX.Element {
    const flow = useResource<FlowDetail>(path("flows", name), { on: ["tasks"], every_ms: 300, poll_ms: 1000 });
    const data = flow.data;
    return (
        <>
            <Head above={<a href={to.flows()}>Flows</a>} title={name} below={data && <Below flow={data} />}>
                {data && <Orders flow={data} refresh={flow.refresh} />}
            </Head>
            <Loaded
                of={flow}
                rows={8}
                missing={
                    <Panel>
                        <Empty title={`There is no flow “${name}”.`}>
                            <a href={to.flows()}>All flows</a>
                        </Empty>
                    </Panel>
                }
            >
                {(detail) => <Body flow={detail} />}
            </Loaded>
        </>
    );
}

function Below({ flow }: { flow: FlowDetail }): JSX.Element {
    return (
        <span class="instance-below">
            <FlowState flow={flow} />
            <span>
                for <Since time={flow.since} />
            </span>
            {flow.run !== null && <span>run {flow.run}</span>}
            <span>durability {flow.durability}</span>
            {flow.flow !== flow.name && <span class="mono">{flow.flow}</span>}
            {!isIll(flow) && <span>{reasonOf(flow)}</span>}
            {flow.restarts > 0 && <Badge tone="warn">{plural(flow.restarts, "restart")}</Badge>}
        </span>
    );
}

const DOWN = ["idle", "completed", "stopped", "failed", "cancelled", "drained"];
const ENDING = ["draining", "abort_requested", "closing"];

/** The orders that change something in this state. */
export function legalOrders(state: string): { run: boolean; drain: boolean; cancel: boolean } {
    const down = DOWN.includes(state);
    const waits = state === "backing_off";
    return { run: down || waits || state === "ready", drain: !down && !waits && !ENDING.includes(state), cancel: !down && state !== "closing" };
}

function Orders({ flow, refresh }: { flow: FlowDetail; refresh: () => void }): JSX.Element | null {
    const legal = legalOrders(flow.state);
    const order = (word: string) => async () => {
        await post(path("flows", flow.name, word), {});
        refresh();
    };
    if (!may("admin")) return <span class="muted">Orders need a token with the scope admin.</span>;
    return (
        <>
            {legal.run && <Action label="Run" kind="primary" ask={flow.state === "completed" ? "A new run begins." : undefined} run={order("run")} />}
            {legal.drain && <Action label="Drain" ask="Its sources stop; rows in flight are processed." run={order("drain")} />}
            {legal.cancel && <Action label="Cancel" kind="danger" ask="It stops at once; the next run continues." run={order("cancel")} />}
        </>
    );
}

type Tab = "rows" | "rejected" | "life";

function Body({ flow }: { flow: FlowDetail }): JSX.Element {
    const search = place.value.search;
    const stage = flow.stages.find((one) => one.name === search.get("stage")) ?? null;
    const edge = flow.edges.find((one) => edgeKey(one) === search.get("edge")) ?? null;
    const choose = (values: { stage?: string | null; edge?: string | null }) => amend({ stage: null, edge: null, at: null, ...values });
    const bad = flow.stages.filter((one) => one.reason);
    return (
        <>
            {isIll(flow) && flow.reason && <Notice text={flow.reason} />}
            {!isIll(flow) && bad.map((one) => <Notice key={one.name} text={`${one.name}: ${one.reason}`} />)}
            <Tiles flow={flow} />
            <Panel title="Graph" aside={<span class="muted">{plural(flow.stages.length, "stage")}; click a stage or an edge to see its rows</span>}>
                <FlowGraph
                    flow={flow}
                    stage={stage?.name ?? null}
                    edge={edge && edgeKey(edge)}
                    onStage={(chosen) => choose({ stage: chosen === stage?.name ? null : chosen })}
                    onEdge={(chosen) => choose({ edge: edge && chosen === edgeKey(edge) ? null : chosen })}
                />
            </Panel>
            {stage && <StagePanels key={stage.name} flow={flow} stage={stage} close={() => choose({})} />}
            {edge && <EdgePanel edge={edge} close={() => choose({})} />}
            <Streams flow={flow} stage={stage} edge={edge} />
            {flow.journal && <Journal journal={flow.journal} flow={flow} />}
        </>
    );
}

function Notice({ text }: { text: string }): JSX.Element {
    return (
        <ul class="notices">
            <li>
                <Icon name="alert" />
                <span>{text}</span>
            </li>
        </ul>
    );
}

function Tiles({ flow }: { flow: FlowDetail }): JSX.Element {
    const minute = minuteOf(flow);
    const last = (values: number[]) => values[values.length - 1];
    return (
        <div class="tiles">
            <Tile name="Rows in" value={rate(last(minute.in))} unit={`/s, ${count(flow.rows_in)} in all`} values={minute.in} />
            <Tile name="Rows out" value={rate(last(minute.out))} unit={`/s, ${count(flow.rows_out)} in all`} values={minute.out} />
            <Tile name="Lag" value={short(flow.lag)} unit="rows between stages" values={minute.lag} />
            <Tile name="Rejected" value={short(flow.rejected)} unit="rows" values={minute.rejected} tone="bad" />
        </div>
    );
}

function Tile({ name, value, unit, values, tone = "info" }: { name: string; value: string; unit: string; values: number[]; tone?: string }) {
    return (
        <div class={`tile ${values.every((v) => v === 0) ? "quiet" : tone}`}>
            <div class="tile-name">{name}</div>
            <div class="tile-value">
                {value}
                <span class="tile-unit">{unit}</span>
            </div>
            <Sparkline values={values} label={`${name} over the last minute`} />
        </div>
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

function Close({ run, what }: { run: () => void; what: string }): JSX.Element {
    return (
        <Button kind="quiet" small onClick={run} aria-label={`Close ${what}`}>
            <Icon name="close" />
        </Button>
    );
}

const ENDS = { natural: "all rows were processed", truncated: "the flow was stopped; the next run continues", poison: "rows before it may be incomplete" };

function countsOf(stage: FlowStage): [string, ComponentChildren][] {
    const rows: [string, ComponentChildren][] = [
        ["State", <span key="s"><Badge tone={stageTone(stage.state)}>{worded(stage.state ?? "not open")}</Badge> {stage.reason}</span>],
        ["Rows in", count(stage.in)],
        ["Rows out", `${count(stage.out)}, ${rate(stage.rate)} a second`],
        ["Rejected", count(stage.rejected)],
        ["Turns", `${count(stage.turns)}, ${count(stage.blocked)} ended for lack of room`],
    ];
    if (stage.kind === "source") rows.splice(1, 1);
    if (stage.kind === "sink") rows.splice(1, 2, ["Rows in", `${count(stage.in)}, ${rate(stage.rate)} a second`]);
    if (stage.kind === "stateful" || stage.kind === "join") rows.push([stage.kind === "join" ? "Reference rows" : "States", count(stage.keys)]);
    if (stage.end) rows.push(["Its end", `${stage.end}: ${ENDS[stage.end]}`]);
    return rows;
}

function definitionOf(stage: StageDefinition): [string, ComponentChildren][] {
    const rows: [string, ComponentChildren][] = [["Kind", stage.kind], ["Connector", stage.connector ?? "functions in C"]];
    const texts: [string, string | null][] = [["Input", stage.in], ["Reference", stage.reference], ["Output", stage.out], ["Key", stage.key], ["Reference key", stage.reference_key]];
    for (const [name, text] of texts) if (text) rows.push([name, <span key={name} class="mono value">{text}</span>]);
    if (stage.with.length) rows.push(["Policies", stage.with.join(", ")]);
    for (const [name, value] of Object.entries(stage.settings))
        rows.push([name, <span key={name} class="mono value">{typeof value === "string" ? value : write(value)}</span>]);
    return rows;
}

/** The stage: what it has done, what it is, and the machine of its supervisor. */
function StagePanels({ flow, stage, close }: { flow: FlowDetail; stage: FlowStage; close: () => void }): JSX.Element {
    const definition = useResource<StageDefinition>(path("flows", flow.name, "stages", stage.name), { every_ms: 5000 });
    const machine = useMemo(() => (definition.data ? normal(definition.data.machine) : null), [definition.data?.name, flow.run]);
    const state = stage.state;
    return (
        <>
            <Panel title={<>Stage {stage.name}</>} flush aside={<Close run={close} what={`the stage ${stage.name}`} />}>
                <div class="flow-stage-facts">
                    <List rows={countsOf(stage)} />
                    <Loaded of={definition} rows={4}>
                        {(data) => <List rows={definitionOf(data)} />}
                    </Loaded>
                </div>
            </Panel>
            {machine && (
                <Panel title="Its supervisor" aside={<span class="muted">{state ? `in ${worded(state)}` : "not open"}</span>}>
                    <Diagram
                        machine={machine}
                        trace={{ current: state, states: new Set(state ? [state] : []), arrows: new Set(), last: null, ended: machine.states.some((one) => one.final && one.name === state) }}
                    />
                </Panel>
            )}
        </>
    );
}

const EDGES = { data: "rows", reference: "reference rows of the join", back: "rows that go back" };

function EdgePanel({ edge, close }: { edge: FlowEdge; close: () => void }): JSX.Element {
    return (
        <Panel title={<>{edge.from} → {edge.to}</>} flush aside={<Close run={close} what={`the edge ${edge.from} to ${edge.to}`} />}>
            <List
                rows={[
                    ["Carries", <span key="c">{EDGES[edge.kind]} <span class="mono value">{edge.record ?? ""}</span></span>],
                    ["Rate", `${rate(edge.rate)} rows a second`],
                    ["Written, read", `${count(edge.written)}, ${count(edge.read)}`],
                    ["Lag", plural(edge.lag, "row")],
                    ["Credit", <span key="r">{count(edge.credit)} of {count(edge.window)} rows {creditTone(edge) === "bad" && <Badge tone="bad">{edge.from} waits for {edge.to}</Badge>}</span>],
                ]}
            />
        </Panel>
    );
}

const TABS: [Tab, string][] = [["rows", "Rows"], ["rejected", "Rejected"], ["life", "Life"]];

/** The stream of rows that is meant: a sink has none of its own. */
function streamOf(flow: FlowDetail, stage: FlowStage | null, edge: FlowEdge | null): string | null {
    if (edge) return edge.from;
    if (stage?.kind !== "sink") return stage?.name ?? null;
    return flow.edges.find((one) => one.to === stage.name)?.from ?? null;
}

/** A run before the last one, if the address asks for it. */
function earlierRun(flow: FlowDetail): number | null {
    const wanted = Number(place.value.search.get("run") ?? NaN);
    return Number.isInteger(wanted) && wanted >= 1 && wanted < (flow.run ?? 0) ? wanted : null;
}

const RUNS_LISTED = 20;

function Runs({ flow, run }: { flow: FlowDetail; run: number | null }): JSX.Element | null {
    const last = flow.run ?? 0;
    if (last < 2) return null;
    const earlier = Array.from({ length: Math.min(RUNS_LISTED, last - 1) }, (_, i) => last - 1 - i);
    if (run !== null && !earlier.includes(run)) earlier.push(run);
    return (
        <select aria-label="Run" value={run ?? ""} onChange={(event) => amend({ run: event.currentTarget.value, at: null })}>
            <option value="">run {last}, the last</option>
            {earlier.map((one) => (
                <option key={one} value={one}>run {one}</option>
            ))}
        </select>
    );
}

function Streams({ flow, stage, edge }: { flow: FlowDetail; stage: FlowStage | null; edge: FlowEdge | null }): JSX.Element {
    const wanted = place.value.search.get("tab");
    const tab = TABS.find(([value]) => value === wanted)?.[0] ?? "rows";
    const stream = streamOf(flow, stage, edge);
    const run = earlierRun(flow);
    useEffect(() => {
        // A link to a stage that is gone shows all of them.
        if (place.value.search.get("stage") && !stage) amend({ stage: null });
    }, [stage]);
    return (
        <>
            <div class="filter-bar">
                <Segmented label="Show" value={tab} options={TABS} onChange={(value) => amend({ tab: value === "rows" ? null : value, at: null })} />
                <select aria-label="Stage" value={stage?.name ?? ""} onChange={(event) => amend({ stage: event.currentTarget.value, edge: null, at: null })}>
                    <option value="">every stage</option>
                    {flow.stages.map(({ name }) => (
                        <option key={name} value={name}>{name}</option>
                    ))}
                </select>
                <Runs flow={flow} run={run} />
            </div>
            {tab === "rows" && <Rows flow={flow} stream={stream} run={run} />}
            {tab === "rejected" && <Rejected flow={flow} stage={stage} run={run} />}
            {tab === "life" && <Life flow={flow} stage={stage?.name ?? null} run={run} />}
        </>
    );
}

const UNITS = ["bytes", "KiB", "MiB", "GiB", "TiB"];

function bytes(value: number): string {
    const power = Math.min(UNITS.length - 1, Math.floor(Math.log2(Math.max(1, value)) / 10));
    return power === 0 ? plural(value, "byte") : `${(value / 1024 ** power).toFixed(1)} ${UNITS[power]}`;
}

function Journal({ journal, flow }: { journal: FlowJournal; flow: FlowDetail }): JSX.Element {
    const behind = journal.position - journal.acknowledged;
    return (
        <Panel title="Journal" flush aside={<span class="muted">one log for all stages of a run</span>}>
            <div class="flow-stage-facts">
                <List
                    rows={[
                        ["Position", count(journal.position)],
                        ["Acknowledged", `${count(journal.acknowledged)}${behind > 0 ? `, ${count(behind)} not yet ${flow.durability === "disk" ? "synced" : "written"}` : ""}`],
                        ["Kept from", count(journal.begin)],
                    ]}
                />
                <List
                    rows={[
                        ["Size", `${bytes(journal.bytes)} in ${plural(journal.segments, "segment")}`],
                        ["Writes, syncs", `${count(journal.writes)}, ${count(journal.syncs)}`],
                        ["Torn groups", journal.torn ? <Badge tone="warn">{count(journal.torn)} cut after a crash</Badge> : "none"],
                    ]}
                />
            </div>
        </Panel>
    );
}
