// SPDX-License-Identifier: MIT
// Copyright the detent authors

// The simulator: walk through a definition by hand. Nothing of it reaches the server but a
// definition that is to be checked.
import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { post, words } from "../api";
import { coloursOf } from "../colours";
import { arrowKey, Diagram, type Trace } from "../diagram";
import { span } from "../format";
import { amend, place } from "../router";
import { definition, normal, summaries } from "../store";
import type { Finding, Machine, Transition } from "../types";
import { Badge, Button, classes, Empty, Head, Icon, Panel, Segmented, Skeleton, StateChip, Trouble } from "../ui";

interface Step {
    transition: Transition;
    state: string;
}

const SAMPLE = `#define FSM_NAME door
#define FSM_PREFIX DOOR
STATE(CLOSED, closed, INITIAL)
STATE(OPEN,   open)
STATE(LOCKED, locked)
EVENT(PUSH,     push)
EVENT(PULL,     pull)
EVENT(TURN_KEY, turn_key)
ON(CLOSED, PUSH,     OPEN)
ON(OPEN,   PULL,     CLOSED)
ON(CLOSED, TURN_KEY, LOCKED)
ON(LOCKED, TURN_KEY, CLOSED)
AFTER(OPEN, SECONDS(30), PULL)
`;

export function Simulator(): JSX.Element {
    const search = place.value.search;
    const pasted = search.get("source") === "paste";
    const names = (summaries.value ?? []).map((m) => m.name);
    const chosen = search.get("machine") ?? names[0] ?? null;
    return (
        <>
            <Head title="Simulator" below="Click through a machine. Nothing here touches what is served.">
                <Segmented
                    label="Definition"
                    value={pasted ? "paste" : "served"}
                    options={[["served", "Served machine"], ["paste", "Paste a definition"]]}
                    onChange={(value) => amend({ source: value === "paste" ? "paste" : null, machine: null })}
                />
                {!pasted && names.length > 0 && (
                    <select aria-label="Machine" value={chosen ?? ""} onChange={(event) => amend({ machine: event.currentTarget.value })}>
                        {names.map((name) => (
                            <option key={name}>{name}</option>
                        ))}
                    </select>
                )}
            </Head>
            {pasted ? <Paste /> : chosen ? <Served key={chosen} name={chosen} /> : <NoMachine />}
        </>
    );
}

function NoMachine(): JSX.Element {
    if (summaries.value === null) return <Skeleton rows={6} />;
    return (
        <Panel>
            <Empty title="No machine is served.">
                <button type="button" class="link" onClick={() => amend({ source: "paste" })}>
                    Paste a definition
                </button>{" "}
                instead.
            </Empty>
        </Panel>
    );
}

function Served({ name }: { name: string }): JSX.Element {
    const [machine, setMachine] = useState<Machine | null>(null);
    const [error, setError] = useState<string | null>(null);
    useEffect(() => {
        definition(name).then(setMachine, (failure) => setError(words(failure)));
    }, [name]);
    if (error) return <Trouble text={error} />;
    return machine ? <Play machine={machine} /> : <Skeleton rows={6} />;
}

function Paste(): JSX.Element {
    const [spec, setSpec] = useState(SAMPLE);
    const [machine, setMachine] = useState<Machine | null>(null);
    const [findings, setFindings] = useState<Finding[]>([]);
    const [error, setError] = useState<string | null>(null);
    const [busy, setBusy] = useState(false);
    const check = async (event: Event) => {
        event.preventDefault();
        setBusy(true);
        setError(null);
        try {
            const answer = await post<{ machine: Machine | null; findings: Finding[] }>("/definitions", { spec });
            setMachine(answer.machine && normal(answer.machine));
            setFindings(answer.findings);
        } catch (failure) {
            setError(words(failure));
        }
        setBusy(false);
    };
    return (
        <>
            <Panel title="Definition">
                <form class="form" onSubmit={check}>
                    <textarea class="mono spec" aria-label="Definition" spellcheck={false} rows={12} value={spec} onInput={(event) => setSpec(event.currentTarget.value)} />
                    {error && <Trouble text={error} />}
                    <Findings findings={findings} />
                    <div class="form-foot">
                        <Button type="submit" kind="primary" busy={busy} disabled={!spec.trim()}>
                            Check and play
                        </Button>
                        <span class="muted">Rows as in an .fsm file. Nothing is kept.</span>
                    </div>
                </form>
            </Panel>
            {machine && <Play key={JSON.stringify(machine)} machine={machine} />}
        </>
    );
}

export function Findings({ findings }: { findings: Finding[] }): JSX.Element | null {
    if (!findings.length) return null;
    return (
        <ul class="stuck">
            {findings.map((finding, i) => (
                <li key={i}>
                    <Badge tone={finding.severity === "error" ? "bad" : "warn"}>{finding.severity}</Badge>
                    <div class="grow">
                        <span class="mono muted">
                            {finding.line}:{finding.column}
                        </span>{" "}
                        {finding.text} {finding.rule && <span class="type">{finding.rule}</span>}
                    </div>
                </li>
            ))}
        </ul>
    );
}

function traceOf(machine: Machine, steps: Step[]): Trace {
    const states = new Set([machine.initial, ...steps.map((step) => step.state)]);
    const keys = steps.map(({ transition: t }) => arrowKey(t.from, t.event, t.to));
    const last = steps[steps.length - 1];
    return {
        states,
        arrows: new Set(keys),
        last: keys[keys.length - 1] ?? null,
        current: last?.state ?? machine.initial,
        ended: last?.transition.outcome === "stop",
    };
}

/** The alternatives of each event that the state takes. */
function choices(machine: Machine, state: string): Map<string, Transition[]> {
    const all = new Map<string, Transition[]>();
    for (const t of machine.transitions)
        if (t.from === state) all.set(t.event, [...(all.get(t.event) ?? []), t]);
    return all;
}

/** A definition that is not served has its colours all the same. */
function Chip({ machine, name, stopped }: { machine: Machine; name: string; stopped?: boolean }): JSX.Element {
    return <StateChip machine={machine.name} name={name} stopped={stopped} index={coloursOf(machine.states).get(name)} />;
}

function Play({ machine }: { machine: Machine }): JSX.Element {
    const [steps, setSteps] = useState<Step[]>([]);
    const trace = traceOf(machine, steps);
    const state = trace.current!;
    const open = trace.ended ? new Map<string, Transition[]>() : choices(machine, state);
    const take = (t: Transition) => setSteps([...steps, { transition: t, state: t.to ?? t.from }]);
    const click = (event: string) => {
        const found = open.get(event);
        if (found?.length === 1) take(found[0]);
    };
    return (
        <>
            <Panel title={machine.name} aside={<Chip machine={machine} name={state} stopped={trace.ended} />}>
                <Diagram machine={machine} trace={trace} onEvent={click} />
            </Panel>
            <div class="columns even">
                <Takes machine={machine} state={state} open={open} ended={!!trace.ended} take={take} />
                <Trail machine={machine} steps={steps} setSteps={setSteps} />
            </div>
        </>
    );
}

interface TakesProps {
    machine: Machine;
    state: string;
    open: Map<string, Transition[]>;
    ended: boolean;
    take: (transition: Transition) => void;
}

function Takes({ machine, state, open, ended, take }: TakesProps): JSX.Element {
    const timeout = machine.states.find((s) => s.name === state)?.timeout ?? null;
    const others = machine.events.filter((event) => !open.has(event.name));
    return (
        <Panel title={`What ${state} takes`}>
            {ended && <p class="muted">It has stopped.</p>}
            {!ended && open.size === 0 && <p class="muted">Nothing: this is the end of the path.</p>}
            <ul class="takes">
                {[...open].map(([event, found]) => (
                    <li key={event}>
                        <span class="takes-name">
                            <span class="strong event-name">{event}</span>
                            {machine.events.find((e) => e.name === event)?.internal && <Badge>internal</Badge>}
                            {timeout?.event === event && <Badge tone="info">after {span(timeout.after_ms)}</Badge>}
                            {machine.timers?.some((timer) => timer.timeout.event === event) && <Badge tone="info">timer</Badge>}
                        </span>
                        <span class="takes-ways">
                            {found.map((t, i) => (
                                <Button key={i} small onClick={() => take(t)} title={t.do?.length ? `does ${t.do.join(", ")}` : undefined}>
                                    {found.length > 1 && <span class="type">{t.guard ? `if ${t.guard}` : "else"}</span>}
                                    {t.outcome === "stop" ? "stop" : t.outcome === "stay" ? "stay" : `→ ${t.to}`}
                                </Button>
                            ))}
                        </span>
                    </li>
                ))}
            </ul>
            {!ended && others.length > 0 && (
                <p class="why">
                    Not taken here: {others.map((event) => `${event.name} (${event.unhandled})`).join(", ")}
                </p>
            )}
        </Panel>
    );
}

function Trail({ machine, steps, setSteps }: { machine: Machine; steps: Step[]; setSteps: (steps: Step[]) => void }) {
    return (
        <Panel
            title="Path"
            aside={
                <span class="row-actions">
                    <Button small disabled={!steps.length} onClick={() => setSteps(steps.slice(0, -1))}>
                        <Icon name="undo" /> Undo
                    </Button>
                    <Button small disabled={!steps.length} onClick={() => setSteps([])}>
                        Start over
                    </Button>
                </span>
            }
        >
            <ol class="trail">
                <li>
                    <button type="button" class={classes("moved", !steps.length && "here")} onClick={() => setSteps([])}>
                        <span class="moved-sequence">0</span>
                        <span class="moved-text">
                            <span class="moved-line"><em>start</em><span class="moved-states"><Chip machine={machine} name={machine.initial} /></span></span>
                        </span>
                    </button>
                </li>
                {steps.map((step, i) => (
                    <li key={i}>
                        <button type="button" class={classes("moved", i === steps.length - 1 && "here")} onClick={() => setSteps(steps.slice(0, i + 1))}>
                            <span class="moved-sequence">{i + 1}</span>
                            <span class="moved-text">
                                <span class="moved-line">
                                    <span class="strong event-name">{step.transition.event}</span>
                                    {step.transition.guard && <span class="type">if {step.transition.guard}</span>}
                                    {step.transition.do?.length ? <span class="type">does {step.transition.do.join(", ")}</span> : null}
                                    <span class="moved-states"><Chip machine={machine} name={step.state} stopped={step.transition.outcome === "stop"} /></span>
                                </span>
                            </span>
                        </button>
                    </li>
                ))}
            </ol>
        </Panel>
    );
}
