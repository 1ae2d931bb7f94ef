// SPDX-License-Identifier: MIT
// Copyright the detent authors

// Effects that have not ended, and dead letters.
import type { JSX } from "preact";
import { path, post } from "../api";
import { MachineFilter } from "./filter";
import { FirstMachine } from "./first";
import { amend, place, to } from "../router";
import { useList } from "../resource";
import { Table, type Column } from "../table";
import type { EffectRow } from "../types";
import { Action, EffectState, Empty, Head, Id, ListEnd, Loaded, Panel, Segmented } from "../ui";

function columns(refresh: () => void): Column<EffectRow>[] {
    return [
        {
            name: "Effect",
            width: "minmax(6.5rem, 1.1fr)",
            cell: (row) => (
                <span class="clip">
                    <span class="strong">{row.effect}</span> {row.type === "timer" && <span class="muted">timer</span>}
                </span>
            ),
        },
        {
            name: "Instance",
            width: "minmax(4.5rem, 1.4fr)",
            cell: (row) => (
                <a class="clip" href={to.instance(row.machine, row.id)}>
                    <Id>{row.id}</Id>
                </a>
            ),
            below: true,
        },
        {
            name: "State",
            width: "6.6rem",
            cell: (row) => <EffectState effect={row} />,
        },
        { name: "Attempts", width: "5.5rem", right: true, cell: (row) => row.attempts, extra: true },
        {
            name: "Last error",
            width: "minmax(8rem, 2.4fr)",
            cell: (row) => {
                const text = row.reason ?? row.last_error ?? "";
                return <span class="clip muted" title={text}>{text || "–"}</span>;
            },
            below: true,
        },
        {
            name: "",
            width: "5rem",
            right: true,
            cell: (row) =>
                row.dead && (
                    <Action
                        label="Retry"
                        small
                        run={async () => {
                            await post(path("machines", row.machine, "instances", row.id, "retry"), { key: row.key });
                            refresh();
                        }}
                    />
                ),
        },
    ];
}

export function Effects(): JSX.Element {
    const search = place.value.search;
    const machine = search.get("machine");
    const dead = search.get("dead");
    const effects = useList<EffectRow>("/effects", { machine, dead }, { on: ["log"], every_ms: 300, poll_ms: 3000 });
    return (
        <>
            <Head title="Effects" below="Work pending after commits, and dead letters: work that failed too often.">
                <MachineFilter />
                <Segmented
                    label="Which"
                    value={dead === "true" ? "dead" : dead === "false" ? "alive" : "all"}
                    options={[["all", "All"], ["alive", "Alive"], ["dead", "Dead letters"]]}
                    onChange={(value) => amend({ dead: value === "all" ? null : value === "dead" })}
                />
            </Head>
            <Panel flush>
                <Loaded of={effects} rows={6} absent={<FirstMachine />}>
                    {(page) => (
                        <>
                            {page.items.length ? (
                                <Table label="Effects" columns={columns(effects.refresh)} rows={page.items} id={(row) => row.key} />
                            ) : (
                                <Empty title={dead === "true" ? "No dead letters." : "Nothing is left to do."}>
                                    {dead === "true" ? "An effect or a timer that fails too often stays here until it is retried." : "Effects appear here until they have ended."}
                                </Empty>
                            )}
                            <ListEnd page={page} more={effects.more} />
                        </>
                    )}
                </Loaded>
            </Panel>
        </>
    );
}
