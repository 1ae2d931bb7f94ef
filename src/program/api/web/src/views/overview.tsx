// SPDX-License-Identifier: MIT
// Copyright the detent authors

// The overview: what lives, how fast, and what does not go on by itself.
import type { JSX } from "preact";
import { RatePanel } from "../curves";
import { base, count, plural, rate } from "../format";
import { recent } from "../live";
import { to } from "../router";
import { useResource } from "../resource";
import { stateIndex } from "../store";
import type { LogRow, MachineSummary, Overview, Slot, Stuck, Task, WorkersSummary } from "../types";
import {
    At, Badge, Empty, Head, Icon, Id, Loaded, Panel, Since, Sparkline, StackedBar, StateChip, TaskState,
} from "../ui";
import { FlowSummary } from "./flows";
import { explain } from "./tasks";

export function OverviewView(): JSX.Element {
    const overview = useResource<Overview>("/overview", { on: ["log", "tasks"], every_ms: 300, counts: true, poll_ms: 5000 });
    const status = overview.data?.status;
    return (
        <>
            <Head
                title={status ? base(status.project) : "Overview"}
                below={
                    status && (
                        <>
                            {status.state !== "running" && <Badge tone="warn">{status.state}</Badge>} detent {status.version}, up for{" "}
                            <Since time={status.since} />, process {status.process}
                            {typeof status.position === "number" && <>, {plural(status.position, "event")} in the log</>}
                        </>
                    )
                }
            />
            <Loaded of={overview} rows={8}>
                {(data) => <Body data={data} />}
            </Loaded>
        </>
    );
}

function Body({ data }: { data: Overview }): JSX.Element {
    return (
        <>
            <Tiles data={data} />
            <RatePanel />
            <div class="columns wide-left">
                <div class="stacked">
                    <MachineCounts machines={data.machines} />
                    <Activity />
                </div>
                <div class="stacked">
                    <Attention stuck={data.stuck} total={data.stuck_total} capped={data.stuck_capped} />
                    <TaskSummary tasks={data.tasks} counts={data.status.tasks} />
                    <FlowSummary />
                    <WorkerSummary workers={data.workers ?? null} />
                    <SlotSummary slots={data.slots} />
                </div>
            </div>
        </>
    );
}

function Tiles({ data }: { data: Overview }): JSX.Element {
    const { rates, status } = data;
    return (
        <div class="tiles">
            <Rate name="Events" unit="/s" values={rates.events} />
            <Rate name="Unhandled" unit="/s" values={rates.unhandled} tone="warn" />
            <Rate name="Effects failed" unit="/s" values={rates.effects_failed} tone="bad" />
            <Rate name="Restarts" unit={`/s, ${count(status.tasks.restarts ?? 0)} in all`} values={rates.restarts} tone="warn" />
        </div>
    );
}

function Rate({ name, unit, values, tone }: { name: string; unit: string; values: number[]; tone?: string }) {
    const last = values[values.length - 1] ?? 0;
    const quiet = values.every((value) => value === 0);
    return (
        <div class={`tile ${quiet ? "quiet" : (tone ?? "info")}`}>
            <div class="tile-name">{name}</div>
            <div class="tile-value">
                {rate(last)}
                <span class="tile-unit">{unit}</span>
            </div>
            <Sparkline values={values.length > 1 ? values : [0, 0]} label={`${name} per second over the last minute`} />
        </div>
    );
}

function MachineCounts({ machines }: { machines: MachineSummary[] }): JSX.Element {
    return (
        <Panel title="Machines" aside={<a href={to.machines()}>All machines</a>}>
            {machines.length === 0 && (
                <Empty title="No machines yet">
                    <a href={to.machines()}>How to add one</a>
                </Empty>
            )}
            {machines.map((machine) => (
                <MachineCount key={machine.name} machine={machine} />
            ))}
        </Panel>
    );
}

function MachineCount({ machine }: { machine: MachineSummary }): JSX.Element {
    const shares = machine.states.map((state) => ({
        name: state.name,
        index: stateIndex(machine.name, state.name),
        value: state.instances,
    }));
    return (
        <div class="machine-count">
            <div class="machine-count-head">
                <a class="strong" href={to.machine(machine.name)}>
                    {machine.name}
                </a>
                <span class="muted">
                    {count(machine.active)} active, {count(machine.final)} final, {count(machine.stopped)} stopped
                </span>
                {machine.dead > 0 && (
                    <a class="push" href={to.effects({ dead: true, machine: machine.name })}>
                        <Badge tone="bad">{plural(machine.dead, "dead effect")}</Badge>
                    </a>
                )}
            </div>
            <StackedBar shares={shares} label={shares.map((s) => `${s.name}: ${s.value}`).join(", ")} />
            <div class="legend">
                {machine.states.map((state) => (
                    <a
                        key={state.name}
                        href={to.machine(machine.name, { state: state.name })}
                        class={state.instances ? "legend-item" : "legend-item none"}
                    >
                        <i class={"dot c" + stateIndex(machine.name, state.name)} />
                        {state.name} <b>{count(state.instances)}</b>
                    </a>
                ))}
            </div>
        </div>
    );
}

export function LogLine({ row }: { row: LogRow }): JSX.Element {
    const end = row.to ?? row.state ?? "";
    return (
        <div class="log-line" key={row.position}>
            <At time={row.at} />
            <a href={to.instance(row.machine, row.id)}>
                <Id>{row.id}</Id>
            </a>
            <span class="clip event-name">
                {row.type === "start" ? <em>start</em> : (row.event ?? <em>stopped manually</em>)}
            </span>
            <StateChip machine={row.machine} name={end} stopped={row.outcome === "stop"} />
        </div>
    );
}

function Activity(): JSX.Element {
    const rows = recent.value.slice(0, 12);
    return (
        <Panel title="Activity" aside={<a href={to.journal()}>Journal</a>}>
            {rows.length === 0 ? (
                <Empty title="Quiet">Events appear here as they are committed.</Empty>
            ) : (
                <div class="log-lines">
                    {rows.map((row) => (
                        <LogLine key={row.position} row={row} />
                    ))}
                </div>
            )}
        </Panel>
    );
}

function stuckLink(item: Stuck): string | null {
    if (item.about === "task") return to.task(item.name);
    if (item.about === "group") return to.tasks();
    if (item.about === "slot") return to.slot(item.name);
    if (item.about === "worker") return to.worker(item.name);
    if (item.about === "flow") return to.flow(item.name);
    return null;
}

interface StuckGroup {
    about: Stuck["about"];
    machine: string | null;
    /** Of dead letters, the effect or the timer. */
    title: string | null;
    why: string;
    /** The first of them. */
    named: { name: string; link: string | null }[];
    count: number;
    /** Where all of them are listed. */
    list: string | null;
}

function listOf(item: Stuck): string | null {
    if (item.about === "effect") return to.effects({ dead: true, machine: item.machine });
    if (item.about === "worker") return to.workers({ unwell: true });
    if (item.about === "flow") return to.flows();
    if (item.about === "task" || item.about === "group") return to.tasks();
    return item.about === "slot" ? to.slots() : null;
}

function namesOf(item: Stuck): StuckGroup["named"] {
    if (item.machine !== null) return item.ids.map((id) => ({ name: id, link: to.instance(item.machine!, id) }));
    return [{ name: item.name, link: stuckLink(item) }];
}

/** Those with the same reason are one line; dead letters come by machine and effect as well. */
function grouped(stuck: Stuck[]): StuckGroup[] {
    const groups = new Map<string, StuckGroup>();
    for (const item of stuck) {
        const { about, machine, why } = item;
        const title = about === "effect" ? item.name : null;
        const key = JSON.stringify([about, machine, about === "worker" ? null : item.name, why]);
        const group = groups.get(key) ?? { about, machine, title, why, named: [], count: 0, list: listOf(item) };
        group.named.push(...namesOf(item));
        group.count += item.count;
        groups.set(key, group);
    }
    return [...groups.values()].sort((a, b) => b.count - a.count);
}

const NAMED_MAX = 3;

function StuckLine({ group }: { group: StuckGroup }): JSX.Element {
    const named = group.named.slice(0, NAMED_MAX);
    const left = group.count - named.length;
    return (
        <li>
            <Badge>{group.about}</Badge>
            <div class="grow">
                <div class="stuck-names">
                    {group.title && <span class="strong">{group.title}</span>}
                    {named.map(({ name, link }) => (link ? <a key={name} href={link}>{name}</a> : <span key={name} class="strong">{name}</span>))}
                    {left > 0 && (group.list ? <a href={group.list}>and {count(left)} more</a> : <span class="muted">and {count(left)} more</span>)}
                </div>
                <div class="why">{group.why}</div>
            </div>
        </li>
    );
}

const GROUPS_SHOWN = 12;

function Attention({ stuck, total, capped }: { stuck: Stuck[]; total: number; capped: boolean }): JSX.Element {
    const groups = grouped(stuck);
    const unseen = total - groups.slice(0, GROUPS_SHOWN).reduce((sum, group) => sum + group.count, 0);
    return (
        <Panel title="Needs attention" aside={total > 0 && <Badge tone="bad">{count(total)}</Badge>}>
            {total === 0 && (
                <p class="all-well">
                    <Icon name="check" /> Nothing needs attention.
                </p>
            )}
            <ul class="stuck">
                {groups.slice(0, GROUPS_SHOWN).map((group) => (
                    <StuckLine key={JSON.stringify([group.about, group.machine, group.title, group.named[0]?.name, group.why])} group={group} />
                ))}
            </ul>
            {unseen > 0 && (
                <p class="muted">
                    and {count(unseen)} more: <a href={to.effects({ dead: true })}>dead effects</a>, <a href={to.workers({ unwell: true })}>unwell workers</a>
                    {capped && "; there are too many dead effects to group all of them by reason"}
                </p>
            )}
        </Panel>
    );
}

function TaskSummary({ tasks, counts }: { tasks: Task[]; counts: Record<string, number> }): JSX.Element {
    return (
        <Panel title="Supervision" aside={<a href={to.tasks()}>Tree</a>}>
            <div class="facts">
                <Fact name="running" value={counts.running} />
                <Fact name="waiting" value={(counts.waiting ?? 0) + (counts.held ?? 0) + (counts.queued ?? 0)} />
                <Fact name="backing off" value={counts.backing_off} />
                <Fact name="stuck" value={counts.stuck} />
            </div>
            <ul class="stuck">
                {tasks.map((task) => (
                    <li key={task.id}>
                        <TaskState state={task.state} />
                        <div class="grow">
                            <div>
                                <a href={to.task(task.name)}>{task.name}</a>
                            </div>
                            <div class="why">
                                {explain(task)}
                            </div>
                        </div>
                    </li>
                ))}
            </ul>
        </Panel>
    );
}

export function Fact({ name, value }: { name: string; value: number | undefined }): JSX.Element {
    return (
        <div class="fact">
            <b class={value ? "" : "zero"}>{count(value ?? 0)}</b>
            <span>{name}</span>
        </div>
    );
}

function WorkerSummary({ workers }: { workers: WorkersSummary | null }): JSX.Element | null {
    if (!workers) return null;
    const ill: [string, number][] = [
        ["stale", workers.stale],
        ["with a config that was refused", workers.degraded],
        ["paused by an open circuit", workers.circuits_open],
        ["abandoned threads", workers.hung],
    ];
    return (
        <Panel title="Workers" aside={<a href={to.workers()}>All {count(workers.workers)}</a>}>
            <div class="facts">
                <Fact name="running" value={workers.by_phase.running} />
                <Fact name="changing" value={workers.by_phase.starting + workers.by_phase.stopping} />
                <Fact name="degraded" value={workers.by_phase.degraded} />
                <Fact name="stopped" value={workers.by_phase.stopped} />
            </div>
            {ill.some(([, value]) => value > 0) && (
                <p class="worker-ill">
                    {ill.map(([text, value]) => value > 0 && (
                        <a key={text} href={to.workers({ unwell: true })}>
                            <Badge tone="warn">{count(value)} {text}</Badge>
                        </a>
                    ))}
                </p>
            )}
        </Panel>
    );
}

function SlotSummary({ slots }: { slots: Slot[] }): JSX.Element | null {
    if (!slots.length) return null;
    return (
        <Panel title="Slots" aside={<a href={to.slots()}>All slots</a>}>
            <ul class="stuck">
                {slots.slice(0, 8).map((slot) => (
                    <li key={slot.name}>
                        <Meter used={slot.owners} of={slot.width} />
                        <div class="grow">
                            <div>
                                <a href={to.slot(slot.name)}>{slot.name}</a>
                            </div>
                            <div class="why">
                                {slot.owner_name ? (
                                    <>
                                        {slot.owner_name}
                                        {slot.since && (
                                            <>
                                                {" "}
                                                for <Since time={slot.since} />
                                            </>
                                        )}
                                    </>
                                ) : (
                                    "free"
                                )}
                                {slot.depth > 0 && `, ${count(slot.depth)} waiting`}
                            </div>
                        </div>
                    </li>
                ))}
            </ul>
        </Panel>
    );
}

/** How much of a slot is taken, as small boxes. */
export function Meter({ used, of }: { used: number; of: number }): JSX.Element {
    const boxes = Math.min(of, 8);
    const full = of > 8 ? Math.ceil((used / of) * 8) : used;
    return (
        <span class="meter" role="img" aria-label={`${used} of ${of} taken`} title={`${used} of ${of} taken`}>
            {Array.from({ length: boxes }, (_, i) => (
                <i key={i} class={i < full ? "full" : ""} />
            ))}
        </span>
    );
}
