// SPDX-License-Identifier: MIT
// Copyright the detent authors

// Armed timers, the first due first.
import type { JSX } from "preact";
import { MachineFilter } from "./filter";
import { FirstMachine } from "./first";
import { place, to } from "../router";
import { useList } from "../resource";
import { Table, type Column } from "../table";
import type { TimerRow } from "../types";
import { At, Empty, Head, Id, ListEnd, Loaded, Panel, Until } from "../ui";

const COLUMNS: Column<TimerRow>[] = [
    { name: "Due", width: "8rem", cell: (row) => <Until time={row.due} /> },
    {
        name: "Instance",
        width: "minmax(9rem, 2fr)",
        cell: (row) => (
            <a class="clip" href={to.instance(row.machine, row.id)}>
                <Id>{row.id}</Id>
            </a>
        ),
        below: true,
    },
    { name: "Machine", width: "minmax(6rem, 1fr)", cell: (row) => <a class="clip quiet-link" href={to.machine(row.machine)}>{row.machine}</a>, extra: true },
    { name: "Timer", width: "minmax(6rem, 1fr)", cell: (row) => row.timer ? <span class="clip">{row.timer}</span> : <span class="muted">of its state</span>, extra: true },
    { name: "Sends", width: "minmax(6rem, 1fr)", cell: (row) => <span class="clip event-name">{row.event}</span> },
    { name: "At", width: "12rem", right: true, cell: (row) => <At time={row.due} />, extra: true },
];

export function Timers(): JSX.Element {
    const machine = place.value.search.get("machine");
    const timers = useList<TimerRow>("/timers", { machine }, { on: ["log"], every_ms: 300 });
    return (
        <>
            <Head title="Timers" below="Pending timers and retries, ordered by time.">
                <MachineFilter />
            </Head>
            <Panel flush>
                <Loaded of={timers} rows={8} absent={<FirstMachine />}>
                    {(page) => (
                        <>
                            {page.items.length ? (
                                <Table
                                    label="Timers"
                                    columns={COLUMNS}
                                    rows={page.items}
                                    id={(row) => JSON.stringify([row.machine, row.id, row.timer, row.visit])}
                                    link={(row) => to.instance(row.machine, row.id)}
                                />
                            ) : (
                                <Empty title="No timer is armed.">
                                    <code>AFTER(state, SECONDS(30), event)</code> in a machine arms one whenever the state is entered.
                                </Empty>
                            )}
                            <ListEnd page={page} more={timers.more} />
                        </>
                    )}
                </Loaded>
            </Panel>
        </>
    );
}
