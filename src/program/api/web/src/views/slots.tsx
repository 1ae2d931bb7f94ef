// SPDX-License-Identifier: MIT
// Copyright the detent authors

// Slots: who has them, who waits, what was turned away.
import type { JSX } from "preact";
import { count } from "../format";
import { to } from "../router";
import { useResource } from "../resource";
import { Table, type Column } from "../table";
import type { Slot } from "../types";
import { Badge, Head, Loaded, Panel, Since, TaskState } from "../ui";
import { FirstSlot } from "./first";
import { Meter } from "./overview";

const COLUMNS: Column<Slot>[] = [
    {
        name: "Slot",
        width: "minmax(6rem, 1.4fr)",
        wraps: true,
        cell: (slot) => (
            <>
                <a class="strong clip" href={to.slot(slot.name)}>
                    {slot.name}
                </a>
                {slot.durable && <span class="wide-only"><Badge tone="info">durable</Badge></span>}
            </>
        ),
    },
    { name: "State", width: "6.5rem", cell: (slot) => <TaskState state={slot.state} />, extra: true },
    { name: "Taken", width: "minmax(5rem, 6.5rem)", cell: (slot) => <><Meter used={slot.owners} of={slot.width} /><span class="muted">{slot.owners}/{slot.width}</span></> },
    { name: "Holder", width: "minmax(6rem, 1.4fr)", below: true, wraps: true, cell: (slot) => slot.owner_name ? <span class="clip">{slot.owner_name}</span> : <span class="muted">free</span> },
    { name: "For", width: "6rem", cell: (slot) => <Since time={slot.owners ? slot.since : null} />, extra: true },
    { name: "Queue", width: "5.5rem", right: true, cell: (slot) => <span>{count(slot.depth)}{slot.depth_max !== null && <span class="muted"> / {count(slot.depth_max)}</span>}</span> },
    { name: "Started", width: "5rem", right: true, cell: (slot) => figure(slot.started), extra: true },
    { name: "Rejected", width: "5.5rem", right: true, cell: (slot) => slot.rejected ? <Badge tone="warn">{count(slot.rejected)}</Badge> : figure(slot.rejected), extra: true },
    { name: "Replaced", width: "5.5rem", right: true, cell: (slot) => figure(slot.replaced), extra: true },
];

export function figure(value: number | null): JSX.Element {
    return value === null ? <span class="muted">–</span> : <span class={value ? "" : "muted"}>{count(value)}</span>;
}

export function Slots(): JSX.Element {
    const slots = useResource<{ items: Slot[] }>("/slots", { on: ["tasks"], every_ms: 250, poll_ms: 3000 });
    return (
        <>
            <Head title="Slots" below="Slots limit how many jobs run at the same time." />
            <Panel flush>
                <Loaded of={slots} rows={4}>
                    {({ items }) =>
                        items.length ? (
                            <Table label="Slots" columns={COLUMNS} rows={items} id={(slot) => slot.name} link={(slot) => to.slot(slot.name)} />
                        ) : (
                            <FirstSlot />
                        )
                    }
                </Loaded>
            </Panel>
        </>
    );
}
