// SPDX-License-Identifier: MIT
// Copyright the detent authors

// One task: its state, its backoff, and what it writes, as it writes it.
import type { ComponentChildren, JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { open, path, query, words } from "../api";
import { count, nanos, plural } from "../format";
import { parse } from "../json";
import { asleep } from "../live";
import { to } from "../router";
import { useResource } from "../resource";
import { read } from "../sse";
import type { BackoffStep, Line, TaskDetail } from "../types";
import { Action, Ago, At, Badge, classes, Empty, Head, Loaded, Panel, TaskState, Trouble } from "../ui";
import { explain, order } from "./tasks";

export function TaskView({ name }: { name: string }): JSX.Element {
    const task = useResource<TaskDetail>(path("tasks", name), { on: ["tasks"], every_ms: 250, poll_ms: 3000 });
    const data = task.data;
    return (
        <>
            <Head above={<a href={to.tasks()}>Supervision</a>} title={name} below={data && <Below task={data} />}>
                {data && (
                    <>
                        <Action label="Restart" ask="It begins anew." run={order(name, "restart", task.refresh)} />
                        <Action label="Drain" ask="It runs to its end." run={order(name, "drain", task.refresh)} />
                        <Action label="Stop" ask="It stops." kind="danger" run={order(name, "stop", task.refresh)} />
                    </>
                )}
            </Head>
            <Loaded
                of={task}
                rows={6}
                missing={
                    <Panel>
                        <Empty title={`There is no task “${name}”.`}>
                            <a href={to.tasks()}>All tasks</a>
                        </Empty>
                    </Panel>
                }
            >
                {(detail) => (
                    <>
                        <div class="columns even">
                            <Facts task={detail} />
                            <Backoff steps={detail.backoff} failures={detail.failures} waiting={detail.next_at !== null} />
                        </div>
                        <LogTail name={name} />
                    </>
                )}
            </Loaded>
        </>
    );
}

function Below({ task }: { task: TaskDetail }): JSX.Element {
    return (
        <span class="instance-below">
            <TaskState state={task.state} /> <span>{explain(task)}</span>
        </span>
    );
}

function Facts({ task }: { task: TaskDetail }): JSX.Element {
    const exit = task.last.signal !== null ? `signal ${task.last.signal}` : task.last.exit_code !== null ? `exit code ${task.last.exit_code}` : "";
    const rows: [string, ComponentChildren][] = [
        ["Since", <Ago key="a" time={task.since} />],
        ["Process", task.process ?? "–"],
        ["Ready, healthy", `${task.ready ? "yes" : "no"}, ${task.healthy ? "yes" : "no"}`],
        ["Attempt", `${count(task.attempt)}, ${plural(task.failures, "failure")} in a row`],
        ["Restarts", count(task.restarts)],
        ["Last end", task.last.outcome === "none" ? (task.reason ?? "–") : [task.last.outcome, exit].filter(Boolean).join(", ")],
        ["Group", task.group ?? "–"],
        ["Slot", task.slot ? <a key="s" href={to.slot(task.slot)}>{task.slot}</a> : "–"],
    ];
    return (
        <Panel title="Task" flush>
            <dl class="data">
                {rows.map(([name, value]) => (
                    <div key={name}>
                        <dt>{name}</dt>
                        <dd>{value}</dd>
                    </div>
                ))}
            </dl>
        </Panel>
    );
}

const WIDTH = 420;
const HEIGHT = 150;

const ROUND_S = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1800, 3600, 7200, 21600, 86400];

/** Two round spans to measure by, in nanoseconds. */
function marks(most: number): number[] {
    const under = ROUND_S.map((s) => s * 1e9).filter((ns) => ns <= most);
    return under.slice(-2);
}

/** The delay after each failure of a streak, with the range of chance around it. */
function Backoff({ steps, failures, waiting }: { steps: BackoffStep[]; failures: number; waiting: boolean }) {
    if (!steps.length)
        return (
            <Panel title="Backoff">
                <Empty title="It is not restarted automatically." />
            </Panel>
        );
    const most = Math.max(...steps.map((s) => Number(s.most_ns)), 1);
    const slot = WIDTH / steps.length;
    const y = (ns: number) => HEIGHT - (ns / most) * (HEIGHT - 12);
    const here = Math.min(failures, steps.length);
    const step = steps[here - 1];
    return (
        <Panel
            title="Backoff"
            aside={<span class="muted">{step ? `failure ${failures}: ${nanos(step.least_ns)} to ${nanos(step.most_ns)}` : "no failure in a row"}</span>}
        >
            <svg class="backoff" viewBox={`0 0 ${WIDTH + 44} ${HEIGHT + 24}`} role="img" aria-label={steps.map((s) => `after ${s.failures}: ${nanos(s.base_ns)}`).join(", ")}>
                {marks(most).map((ns) => (
                    <g key={ns} class="grid">
                        <line x1={44} x2={WIDTH + 44} y1={y(ns)} y2={y(ns)} />
                        <text x={38} y={y(ns) + 3.5}>{nanos(ns)}</text>
                    </g>
                ))}
                <line class="axis" x1={44} x2={WIDTH + 44} y1={HEIGHT} y2={HEIGHT} />
                {steps.map((s, i) => {
                    const [low, high, middle] = [Number(s.least_ns), Number(s.most_ns), Number(s.base_ns)].map(y);
                    const x = 44 + i * slot;
                    const mark = i + 1 === here && (waiting || failures > 0);
                    return (
                        <g key={s.failures} class={classes(mark && "here")}>
                            <title>{`after ${plural(s.failures, "failure")}: ${nanos(s.base_ns)}, with chance ${nanos(s.least_ns)} to ${nanos(s.most_ns)}`}</title>
                            <rect class="bar" x={x + slot * 0.2} y={middle} width={slot * 0.6} height={HEIGHT - middle} rx="2" />
                            <line class="range" x1={x + slot / 2} x2={x + slot / 2} y1={low} y2={high} />
                            {(steps.length <= 12 || i % 2 === 0) && <text class="tick" x={x + slot / 2} y={HEIGHT + 15}>{s.failures}</text>}
                        </g>
                    );
                })}
            </svg>
        </Panel>
    );
}

const LINES_MAX = 1000;

interface Tail {
    lines: (Line & { key: number })[];
    error: string | null;
    live: boolean;
}

/** Follows the output; connects again when the daemon comes back. */
function useTail(name: string): Tail {
    const [tail, setTail] = useState<Tail>({ lines: [], error: null, live: false });
    const sleeping = asleep.value;
    useEffect(() => {
        if (sleeping) return;
        const abort = new AbortController();
        let timer: ReturnType<typeof setTimeout>;
        let key = 0;
        const run = async () => {
            let first = true;
            try {
                const response = await open(path("tasks", name, "logs") + query({ lines: 200, follow: true }), { signal: abort.signal });
                setTail((old) => ({ ...old, error: null, live: true }));
                await read(response, (message) => {
                    const line = parse(message.data) as Line;
                    if (line.text === undefined) return;
                    const fresh = first;
                    first = false;
                    setTail((old) => ({ ...old, lines: (fresh ? [] : old.lines).concat({ ...line, key: key++ }).slice(-LINES_MAX) }));
                });
            } catch (failure) {
                if (abort.signal.aborted) return;
                setTail((old) => ({ ...old, error: words(failure) }));
            }
            setTail((old) => ({ ...old, live: false }));
            timer = setTimeout(run, 1500);
        };
        void run();
        return () => {
            abort.abort();
            clearTimeout(timer);
        };
    }, [name, sleeping]);
    return tail;
}

function LogTail({ name }: { name: string }): JSX.Element {
    const { lines, error, live } = useTail(name);
    const box = useRef<HTMLDivElement>(null);
    const [follow, setFollow] = useState(true);
    useEffect(() => {
        if (follow && box.current) box.current.scrollTop = box.current.scrollHeight;
    }, [lines, follow]);
    const scrolled = () => {
        // Scrolling is told a frame later, when the view may be gone.
        if (!box.current) return;
        const { scrollTop, scrollHeight, clientHeight } = box.current;
        setFollow(scrollHeight - scrollTop - clientHeight < 24);
    };
    return (
        <Panel
            title="Output"
            flush
            aside={
                follow ? (
                    <Badge tone={live ? "good" : undefined}>{live ? "following" : "not connected"}</Badge>
                ) : (
                    <button type="button" class="link" onClick={() => setFollow(true)}>
                        Follow
                    </button>
                )
            }
        >
            {error && <Trouble text={error} />}
            {/* A box that scrolls must be reachable by key. */}
            <div class="log" ref={box} onScroll={scrolled} tabIndex={0} role="log" aria-label={`Output of ${name}`} aria-live="off">
                {lines.length === 0 && <div class="muted log-none">It has written nothing yet.</div>}
                {lines.map((line) => (
                    <div key={line.key} class={classes("log-row", line.stream)}>
                        <At time={line.at} />
                        <span>
                            {line.missed > 0 && <span class="muted">[{count(line.missed)} lines missed] </span>}
                            {line.dropped > 0 && <span class="muted">[{count(line.dropped)} bytes dropped] </span>}
                            {line.text}
                        </span>
                    </div>
                ))}
            </div>
        </Panel>
    );
}

