// SPDX-License-Identifier: MIT
// Copyright the detent authors

// All machines that are served.
import type { JSX } from "preact";
import { count } from "../format";
import { to } from "../router";
import { useResource } from "../resource";
import { stateIndex } from "../store";
import { Table, type Column } from "../table";
import type { MachineSummary } from "../types";
import { Badge, Head, Loaded, Panel, StackedBar } from "../ui";
import { FirstMachine } from "./first";

function Bar({ machine }: { machine: MachineSummary }): JSX.Element {
    const shares = machine.states.map((state) => ({
        name: state.name, index: stateIndex(machine.name, state.name), value: state.instances,
    }));
    return <StackedBar shares={shares} label={shares.map((s) => `${s.name}: ${s.value}`).join(", ")} />;
}

const COLUMNS: Column<MachineSummary>[] = [
    {
        name: "Machine",
        width: "minmax(9rem, 1.2fr)",
        wraps: true,
        cell: (m) => (
            <>
                <a class="strong clip" href={to.machine(m.name)}>
                    {m.name}
                </a>
                {!m.served && <Badge tone="warn">not served</Badge>}
            </>
        ),
    },
    { name: "Version", width: "5rem", cell: (m) => <span class="muted">v{m.version}</span>, extra: true },
    { name: "By state", width: "minmax(6rem, 2fr)", cell: (m) => <Bar machine={m} /> },
    { name: "Active", width: "6rem", right: true, cell: (m) => count(m.active) },
    { name: "Stopped", width: "6rem", right: true, cell: (m) => count(m.stopped), extra: true },
    { name: "Timers", width: "5rem", right: true, cell: (m) => count(m.timers), extra: true },
    { name: "Effects", width: "5rem", right: true, cell: (m) => count(m.effects), extra: true },
    {
        name: "Dead",
        width: "4.5rem",
        right: true,
        cell: (m) => (m.dead ? <a href={to.effects({ dead: true, machine: m.name })}><Badge tone="bad">{count(m.dead)}</Badge></a> : <span class="muted">0</span>),
    },
];

export function Machines(): JSX.Element {
    const machines = useResource<{ items: MachineSummary[] }>("/machines", { on: ["log"], every_ms: 300, counts: true });
    return (
        <>
            <Head title="Machines" below="The machines served here, with their running instances." />
            <Panel flush>
                <Loaded of={machines} rows={5}>
                    {({ items }) =>
                        items.length ? (
                            <Table label="Machines" columns={COLUMNS} rows={items} id={(m) => m.name} link={(m) => to.machine(m.name)} />
                        ) : (
                            <FirstMachine />
                        )
                    }
                </Loaded>
            </Panel>
        </>
    );
}
