// SPDX-License-Identifier: MIT
// Copyright the detent authors

// One instance: where it stands and why, what it takes, and its whole way to look back on.
import type { JSX } from "preact";
import { useEffect, useMemo, useState } from "preact/hooks";
import { Once, path, post } from "../api";
import { Diagram } from "../diagram";
import { count, millis, now, plural } from "../format";
import { diff, idleGap, lasted, stateAfter, traceOf, useHistory, type History } from "../history";
import { write } from "../json";
import { amend, place, to } from "../router";
import { useResource } from "../resource";
import { Slider } from "../slider";
import { definition } from "../store";
import type { Data, Effect, HistoryRow, Lock, Machine, Timer, Why } from "../types";
import {
    Action, Ago, At, Badge, Button, classes, EffectState, Empty, Fold, Head, Icon, Loaded, Panel, Since, Skeleton, StateChip, Trouble, Until,
} from "../ui";
import { SendEvents } from "./send";

function useDefinition(name: string): Machine | null {
    const [machine, setMachine] = useState<Machine | null>(null);
    useEffect(() => {
        definition(name).then(setMachine, () => undefined);
    }, [name]);
    return machine;
}

export function InstanceView({ machine: name, id }: { machine: string; id: string }): JSX.Element {
    const base = path("machines", name, "instances", id);
    const why = useResource<Why>(base + "/why", {
        on: ["log"], when: (row) => row.machine === name && row.id === id, every_ms: 150, poll_ms: 4000,
    });
    const once = useMemo(() => new Once(), []);
    const machine = useDefinition(name);
    const history = useHistory(name, id, why.data?.sequence ?? null);
    const crumbs = (
        <>
            <a href={to.machines()}>Machines</a> <span aria-hidden="true">/</span> <a href={to.machine(name)}>{name}</a>
        </>
    );
    const instance = why.data;
    return (
        <>
            <Head above={crumbs} title={<span class="id-title">{id}</span>} below={instance && <Below instance={instance} />}>
                <a class="button plain" href={to.journal({ machine: name, id })}>
                    Journal
                </a>
                {instance && !instance.stopped && !instance.final && (
                    <Action
                        label="Cancel instance"
                        ask="It stops for good."
                        kind="danger"
                        run={async () => {
                            await once.post(base + "/cancel", { reason: "cancelled in the console" });
                            why.refresh();
                        }}
                    />
                )}
            </Head>
            <Loaded
                of={why}
                rows={8}
                missing={
                    <Panel>
                        <Empty title={`There is no instance “${id}”.`}>
                            <a href={to.machine(name)}>All instances of {name}</a>
                        </Empty>
                    </Panel>
                }
            >
                {(data) => <Body why={data} machine={machine} history={history} refresh={why.refresh} />}
            </Loaded>
        </>
    );
}

function Below({ instance }: { instance: Why }): JSX.Element {
    return (
        <span class="instance-below">
            <StateChip machine={instance.machine} name={instance.state} stopped={instance.stopped} />
            {instance.stopped ? (
                <>
                    <Badge>stopped</Badge> {instance.reason && <span>{instance.reason}</span>}
                </>
            ) : (
                <span>
                    for <Since time={instance.moved_at} />
                </span>
            )}
            <span class="muted">
                {plural(instance.sequence, "event")}, started <Ago time={instance.started_at} />
            </span>
        </span>
    );
}

interface BodyProps {
    why: Why;
    machine: Machine | null;
    history: History;
    refresh: () => void;
}

/** Which row is looked at: that of the address, or the newest one. */
function useAt(rows: HistoryRow[]): [number, (index: number) => void] {
    const wanted = place.value.search.get("at");
    const found = wanted === null ? -1 : rows.findIndex((row) => row.sequence === Number(wanted));
    const newest = rows.length - 1;
    const set = (index: number) => amend({ at: index >= newest ? null : rows[index].sequence });
    return [found < 0 ? newest : found, set];
}

function Body({ why, machine, history, refresh }: BodyProps): JSX.Element {
    const { rows } = history;
    const [at, setAt] = useAt(rows);
    const past = at < rows.length - 1;
    const ended = why.stopped || why.final;
    return (
        <>
            <div class="columns even">
                <WhyPanel why={why} last={rows[rows.length - 1]?.at ?? null} refresh={refresh} />
                <SendEvents why={why} machine={machine} past={past} refresh={refresh} back={() => setAt(rows.length - 1)} />
            </div>
            <Panel title="Path" aside={rows.length > 0 && <Moment row={rows[at]} past={past} back={() => setAt(rows.length - 1)} />}>
                {rows.length > 1 && <Slider machine={why.machine} rows={rows} at={at} ended={ended} onChange={setAt} />}
                {machine && rows.length > 0 ? <Diagram machine={machine} trace={traceOf(rows, at)} /> : <Skeleton rows={4} />}
            </Panel>
            <div class="columns wide-left">
                <Timeline history={history} at={at} why={why} ended={ended} onChange={setAt} />
                <div class="stacked">
                    <DataPanel rows={rows} at={at} live={past ? null : why.data} />
                    <Timers why={why} refresh={refresh} />
                    <Effects why={why} refresh={refresh} />
                    <LockPanel lock={why.lock} deferred={why.deferred} />
                </div>
            </div>
        </>
    );
}

function Moment({ row, past, back }: { row: HistoryRow; past: boolean; back: () => void }): JSX.Element {
    const name = row.type === "start" ? "the start" : `event ${count(row.sequence)}`;
    if (!past) return <span class="muted">now, at {name}</span>;
    return (
        <span class="moment">
            <span>
                looking at {name}, <Ago time={row.at} />
            </span>
            <Button small onClick={back}>
                Back to now
            </Button>
        </span>
    );
}

/** Makes a dead letter due again. */
function retry(why: Why, key: string, refresh: () => void): () => Promise<void> {
    return async () => {
        await post(path("machines", why.machine, "instances", why.id, "retry"), { key });
        refresh();
    };
}

function timerKey(timer: Timer): string {
    return `timer/${timer.timer}`;
}

/** The dead letters of an instance: the key that retries each, and what it is called. */
function deadLetters(why: Why): { key: string; name: string }[] {
    const effects = why.effects.filter((effect) => effect.dead).map((effect) => ({ key: effect.key, name: effect.effect }));
    const timers = why.timers.filter((timer) => timer.dead).map((timer) => ({ key: timerKey(timer), name: timer.timer || timer.event }));
    return [...effects, ...timers];
}

/** A sentence of the daemon, whose times go on: "in 3m (2026-...)", and "..., 12s ago" of the last event. */
function Sentence({ text, last }: { text: string; last: string | null }): JSX.Element {
    if (text.startsWith("detent ")) return <code>{text}</code>;
    const due = /^(.*?)(?:in )?\S+ ?(?:ago )?\((\d{4}-\d\d-\d\dT[^)]+Z)\)(.*)$/.exec(text);
    if (due)
        return (
            <span>
                {due[1]}
                <Until time={due[2]} />
                {due[3]}
            </span>
        );
    const ago = last !== null && /^(.*), (?:\S+ ago|now)$/.exec(text);
    if (ago)
        return (
            <span>
                {ago[1]}, <Ago time={last} />
            </span>
        );
    return <span>{text}</span>;
}

/** The sentences, but for the one that counts the time: the head of the page does, and goes on counting. */
function WhyPanel({ why, last, refresh }: { why: Why; last: string | null; refresh: () => void }): JSX.Element {
    const sentences = why.sentences.filter((sentence) => sentence.about !== "state");
    const dead = deadLetters(why);
    return (
        <Panel title="Why">
            <ul class="sentences">
                <li>
                    <span class="about">state</span>
                    <span>
                        {why.stopped ? "stopped in " : ""}
                        {why.state}, for <Since time={why.moved_at} />
                    </span>
                </li>
                {sentences.map((sentence, i) => (
                    <li key={i}>
                        <span class="about">{sentence.about}</span>
                        <Sentence text={sentence.text} last={sentence.about === "last" ? last : null} />
                    </li>
                ))}
            </ul>
            {dead.length > 0 && (
                <div class="why-actions">
                    {dead.map((letter) => (
                        <Action key={letter.key} label={`Retry ${letter.name}`} small run={retry(why, letter.key, refresh)} />
                    ))}
                </div>
            )}
        </Panel>
    );
}

interface TimelineProps {
    history: History;
    at: number;
    why: Why;
    ended: boolean;
    onChange: (index: number) => void;
}

/** The sequence of the event that asked for an effect; the last but one part of its key. */
function askedAt(effect: Effect): number {
    return Number(effect.key.split("/").at(-2));
}

/** The sequence of the event that armed a timer: the first one of its visit, or the oldest that is known. */
function armedAt(timer: Timer, rows: HistoryRow[]): number | undefined {
    return rows.find((row) => (row.type === "start" ? 1 : (row.visit ?? 0)) >= timer.visit)?.sequence ?? rows[0]?.sequence;
}

/** Timers that were fired in vain, as effects of the event that armed them. */
function failedTimers(why: Why, rows: HistoryRow[]): { sequence: number | undefined; effect: Effect }[] {
    return why.timers
        .filter((timer) => timer.attempts)
        .map((timer) => {
            const { dead = false, attempts = 0, last_error = null, reason = null, next_at = null } = timer;
            const effect = { key: timerKey(timer), effect: timer.timer || timer.event, dead, attempts, last_error, reason, next_at };
            return { sequence: armedAt(timer, rows), effect };
        });
}

/** How far an effect or a timer has come, below the event that asked for it. */
function Attempts({ effect }: { effect: Effect }): JSX.Element {
    const failure = effect.reason ?? effect.last_error;
    return (
        <div class="attempts">
            <EffectState effect={effect} />
            <span class="strong">{effect.effect}</span>
            <span class="muted">
                {plural(effect.attempts, "attempt")}
                {failure && <>: {failure}</>}
            </span>
        </div>
    );
}

const SHOWN_MAX = 300;

function Timeline({ history, at, why, ended, onChange }: TimelineProps): JSX.Element {
    const { rows, earlier, error, loading, loadEarlier } = history;
    const gap = idleGap(rows);
    const tried = [...why.effects.map((effect) => ({ sequence: askedAt(effect), effect })), ...failedTimers(why, rows)];
    const [most, setMost] = useState(SHOWN_MAX);
    const first = Math.max(0, Math.min(rows.length - most, at - 20));
    const shown = rows.map((row, i) => ({ row, i })).slice(first).reverse();
    return (
        <Panel title="Timeline" aside={<span class="muted">newest first</span>}>
            {error && <Trouble text={error} />}
            {loading && <Skeleton rows={6} />}
            <ol class="timeline">
                {shown.map(({ row, i }) => {
                    const idle = i < rows.length - 1 ? lasted(rows, i, 0) : ended ? 0 : now.value - millis(row.at);
                    return (
                        <li key={row.sequence}>
                            {idle > gap && <Fold ms={Math.floor(idle / 1000) * 1000} />}
                            <Moved row={row} machine={why.machine} here={i === at} onClick={() => onChange(i)} />
                            {tried.filter(({ sequence }) => sequence === row.sequence).map(({ effect }) => (
                                <Attempts key={effect.key} effect={effect} />
                            ))}
                        </li>
                    );
                })}
            </ol>
            {(earlier || first > 0) && (
                <div class="more">
                    <Button onClick={() => (first > 0 ? setMost(most + SHOWN_MAX) : loadEarlier())}>Show earlier</Button>
                </div>
            )}
        </Panel>
    );
}

function eventName(row: HistoryRow): JSX.Element | string {
    if (row.type === "start") return <em>start</em>;
    return row.event ?? <em>stopped manually</em>;
}

function Moved({ row, machine, here, onClick }: { row: HistoryRow; machine: string; here: boolean; onClick: () => void }) {
    const moved = row.from !== undefined && row.from !== row.to;
    return (
        <button type="button" class={classes("moved", here && "here")} aria-current={here ? "step" : undefined} onClick={onClick}>
            <span class="moved-sequence">{row.sequence}</span>
            <span class="moved-text">
                <span class="moved-line">
                    <span class="strong event-name">{eventName(row)}</span>
                    {row.timeout && <Badge tone="info">timeout</Badge>}
                    {row.outcome && row.outcome !== "goto" && <Badge tone={row.outcome === "stop" ? "warn" : undefined}>{row.outcome}</Badge>}
                    <span class="moved-states">
                        {moved && row.from && (
                            <>
                                <StateChip machine={machine} name={row.from} />
                                <span aria-hidden="true">→</span>
                            </>
                        )}
                        <StateChip machine={machine} name={stateAfter(row)} stopped={row.outcome === "stop"} />
                    </span>
                </span>
                {row.payload && Object.keys(row.payload).length > 0 && <code class="payload clip">{write(row.payload)}</code>}
            </span>
            <At time={row.at} />
        </button>
    );
}

export function Value({ value }: { value: unknown }): JSX.Element {
    if (value === undefined) return <span class="muted">–</span>;
    if (value === "") return <span class="muted">empty</span>;
    if (typeof value === "string") return <code class="value">{value}</code>;
    return <code class="value">{write(value)}</code>;
}

function DataPanel({ rows, at, live }: { rows: HistoryRow[]; at: number; live: Data | null }): JSX.Element {
    const after = rows[at]?.data ?? live;
    const before = at > 0 ? rows[at - 1]?.data : null;
    const changes = diff(before, after);
    return (
        <Panel title="Data" flush aside={rows[at] && <span class="muted">after {rows[at].type === "start" ? "the start" : `event ${count(rows[at].sequence)}`}</span>}>
            {changes.length === 0 && <Empty title={after ? "It keeps no data." : "The data at this time is unknown."} />}
            <dl class="data">
                {changes.map((change) => (
                    <div key={change.name} class={change.kind}>
                        <dt>{change.name}</dt>
                        <dd>
                            {(change.kind === "changed" || change.kind === "removed") && (
                                <del>
                                    <Value value={change.before} />
                                </del>
                            )}
                            {change.kind !== "removed" && <Value value={change.after} />}
                        </dd>
                    </div>
                ))}
            </dl>
        </Panel>
    );
}

function Timers({ why, refresh }: { why: Why; refresh: () => void }): JSX.Element | null {
    if (!why.timers.length) return null;
    return (
        <Panel title="Timers">
            <ul class="lines">
                {why.timers.map((timer) => (
                    <li key={timer.timer}>
                        <div class="grow">
                            <span class="strong event-name">{timer.event}</span> <span class="muted">{timer.timer}</span>{" "}
                            {timer.dead && <Badge tone="bad">dead</Badge>}
                            {timer.attempts !== undefined && (
                                <div class="why">
                                    {plural(timer.attempts, "attempt")}
                                    {(timer.reason ?? timer.last_error) && <>: {timer.reason ?? timer.last_error}</>}
                                </div>
                            )}
                        </div>
                        {timer.dead ? (
                            <Action label="Retry" small run={retry(why, timerKey(timer), refresh)} />
                        ) : (
                            <Until time={timer.next_at ?? timer.due} />
                        )}
                    </li>
                ))}
            </ul>
        </Panel>
    );
}

function Effects({ why, refresh }: { why: Why; refresh: () => void }): JSX.Element | null {
    if (!why.effects.length) return null;
    return (
        <Panel title="Effects">
            <ul class="lines">
                {why.effects.map((effect) => (
                    <li key={effect.key}>
                        <div class="grow">
                            <span class="strong">{effect.effect}</span>{" "}
                            <EffectState effect={effect} />
                            <div class="why">
                                {plural(effect.attempts, "attempt")}
                                {(effect.reason ?? effect.last_error) && <>: {effect.reason ?? effect.last_error}</>}
                            </div>
                        </div>
                        {effect.dead && <Action label="Retry" small run={retry(why, effect.key, refresh)} />}
                    </li>
                ))}
            </ul>
        </Panel>
    );
}

function LockPanel({ lock, deferred }: { lock: Lock | null; deferred: Why["deferred"] }): JSX.Element | null {
    if (!lock?.owner && !deferred.length) return null;
    return (
        <Panel title={lock?.owner ? "Lock" : "Deferred"}>
            {lock?.owner && (
                <p class="lock">
                    <Icon name="lock" /> held by <b>{lock.owner}</b>
                    {lock.until && (
                        <>
                            , ends <Until time={lock.until} />
                        </>
                    )}
                    <span class="muted"> fence {lock.fence}</span>
                </p>
            )}
            {deferred.length > 0 && <p>Waiting to be taken: {deferred.map((item) => item.event ?? "an event").join(", ")}</p>}
        </Panel>
    );
}

