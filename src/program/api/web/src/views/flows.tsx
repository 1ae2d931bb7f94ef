// SPDX-License-Identifier: MIT
// Copyright the detent authors

// Flows: state, rates, lag, and what they have rejected.
import type { JSX } from "preact";
import { minuteOf } from "../flow-rates";
import { count, rate } from "../format";
import { to } from "../router";
import { useResource } from "../resource";
import { Table, type Column } from "../table";
import type { Flow } from "../types";
import { Badge, classes, Head, Loaded, Panel, Since, Sparkline } from "../ui";
import { Fact } from "./overview";
import { FirstFlow } from "./first";

const TONES: Record<string, string> = {
    running: "good", completed: "good", drained: "good", ready: "info", opening: "info", created: "info", materializing: "info", materialized: "info",
    source_completed: "warn", draining: "warn", closing: "warn", abort_requested: "warn", backing_off: "bad", failed: "bad",
};

export function FlowState({ flow }: { flow: Flow }): JSX.Element {
    return <Badge tone={TONES[flow.state] ?? "quiet"}>{flow.state.replaceAll("_", " ")}</Badge>;
}

export function isIll(flow: Flow): boolean {
    return flow.state === "failed" || flow.state === "backing_off";
}

/** Why it does not run, where there is a reason; else what it waits for. */
export function reasonOf(flow: Flow): string {
    if (flow.reason) return flow.reason;
    return flow.state === "ready" && flow.start === "manual" ? "waits for the order to run" : "";
}

function useFlows() {
    return useResource<{ items: Flow[] }>("/flows", { on: ["tasks"], every_ms: 300, poll_ms: 1000 });
}

function Speed({ values, name }: { values: number[]; name: string }): JSX.Element {
    const last = values[values.length - 1];
    return (
        <span class="speed">
            <span class="speed-line wide-only">
                <Sparkline values={values} label={`${name} over the last minute`} />
            </span>
            <span class={last ? "speed-value" : "speed-value muted"}>{rate(last)}/s</span>
        </span>
    );
}

const COLUMNS: Column<Flow>[] = [
    {
        name: "Flow", width: "minmax(7rem, 1.2fr)",
        cell: (flow) => (
            <>
                <a class="strong clip" href={to.flow(flow.name)}>
                    {flow.name}
                </a>
                {flow.flow !== flow.name && <span class="type clip wide-only">{flow.flow}</span>}
            </>
        ),
        sort: (flow) => flow.name,
    },
    { name: "State", width: "minmax(6.5rem, 0.8fr)", cell: (flow) => <FlowState flow={flow} />, sort: (flow) => flow.state },
    { name: "Rows in", width: "minmax(9rem, 1fr)", cell: (flow) => <Speed name="Rows in a second" values={minuteOf(flow).in} />, extra: true },
    { name: "Rows out", width: "minmax(5rem, 1fr)", cell: (flow) => <Speed name="Rows out a second" values={minuteOf(flow).out} /> },
    { name: "Received", width: "6rem", right: true, cell: (flow) => count(flow.rows_in), extra: true, sort: (flow) => flow.rows_in },
    { name: "Lag", width: "5rem", right: true, cell: (flow) => count(flow.lag), extra: true, sort: (flow) => flow.lag },
    {
        name: "Rejected", width: "5.5rem", right: true, extra: true, sort: (flow) => flow.rejected,
        cell: (flow) => (flow.rejected ? <a href={to.flow(flow.name, { tab: "rejected" })}><Badge tone="warn">{count(flow.rejected)}</Badge></a> : <span class="muted">0</span>),
    },
    { name: "Reason", width: "minmax(6rem, 1.6fr)", below: true, wraps: true, cell: (flow) => <span class={classes("flow-reason", isIll(flow) ? "ill" : "muted")} title={reasonOf(flow)}>{reasonOf(flow)}</span> },
];

export function Flows(): JSX.Element {
    const flows = useFlows();
    return (
        <>
            <Head title="Flows" below="Each flow passes rows from its sources to its sinks. A row counts when it is in the journal of the flow." />
            <Panel flush>
                <Loaded of={flows} rows={4} absent={<FirstFlow />}>
                    {({ items }) =>
                        items.length ? (
                            <Table label="Flows" columns={COLUMNS} rows={items} id={(flow) => flow.name} link={(flow) => to.flow(flow.name)} />
                        ) : (
                            <FirstFlow />
                        )
                    }
                </Loaded>
            </Panel>
        </>
    );
}

const LISTED = 8;

/** Of the overview: nothing where there are no flows. */
export function FlowSummary(): JSX.Element | null {
    const { data } = useFlows();
    const items = data?.items ?? [];
    if (!items.length) return null;
    const ill = items.filter(isIll);
    const of = (states: string[]) => items.filter((flow) => states.includes(flow.state)).length;
    const shown = [...ill, ...items.filter((flow) => !isIll(flow))].slice(0, LISTED);
    return (
        <Panel title="Flows" aside={<a href={to.flows()}>All {count(items.length)}</a>}>
            <div class="facts">
                <Fact name="running" value={of(["running", "source_completed"])} />
                <Fact name="completed" value={of(["completed"])} />
                <Fact name="failed" value={ill.length} />
                <Fact name="rejected" value={items.reduce((sum, flow) => sum + flow.rejected, 0)} />
            </div>
            <ul class="stuck flow-lines">
                {shown.map((flow) => (
                    <li key={flow.name}>
                        <FlowState flow={flow} />
                        <div class="grow">
                            <div>
                                <a href={to.flow(flow.name)}>{flow.name}</a>
                            </div>
                            <div class="why">{reasonOf(flow) || <>{rate(flow.rate)} rows out a second, {count(flow.lag)} waiting, for <Since time={flow.since} /></>}</div>
                        </div>
                    </li>
                ))}
            </ul>
        </Panel>
    );
}
