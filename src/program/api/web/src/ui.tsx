// SPDX-License-Identifier: MIT
// Copyright the detent authors

// The parts that all views are made of.
import { computed, type ReadonlySignal } from "@preact/signals";
import type { ComponentChildren, JSX } from "preact";
import { useEffect, useId, useMemo, useRef, useState } from "preact/hooks";
import { words } from "./api";
import { clock, count, fullTime, millis, now, plural, span, ticking } from "./format";
import type { Resource } from "./resource";
import { stateIndex } from "./store";
import type { Effect, Page } from "./types";

type Children = ComponentChildren;

export function classes(...names: (string | false | null | undefined)[]): string {
    return names.filter(Boolean).join(" ");
}

const ICONS = {
    overview: "M3 12h4l2.5-7 5 14L17 12h4",
    machines: "M5 5h5v5H5zM14 14h5v5h-5zM10 7.5h4.5a2 2 0 0 1 2 2V14",
    timers: "M12 7.5V12l3 2M12 21a8.5 8.5 0 1 0 0-17 8.5 8.5 0 0 0 0 17zM9.5 1.8h5",
    effects: "M13 3 5 13.5h6L10.5 21 19 10.5h-6z",
    tasks: "M12 4v5M6 20v-5.5a2 2 0 0 1 2-2h8a2 2 0 0 1 2 2V20M12 9v3.5M9.5 4h5M4 20h4M16 20h4",
    slots: "M4 6.5h16M4 12h10M4 17.5h13",
    workers: "M4 5h7v4H4zM13 10.500h7v4h-7zM13 16.500h7v4h-7zM7.500 9v9.500H13M7.500 12.500H13",
    flows: "M3.500 6h6.500a4 4 0 0 1 4 4v4a4 4 0 0 0 4 4h2.500M17.500 15l3 3-3 3M3.500 18h4M16 6h4.500",
    journal: "M6 4h10.5A1.5 1.5 0 0 1 18 5.5V20H7.5A1.5 1.5 0 0 1 6 18.5zM9.5 8.5h5M9.5 12h5",
    simulator: "M8 5.5v13l10.5-6.5z",
    search: "M10.5 17a6.5 6.5 0 1 0 0-13 6.5 6.5 0 0 0 0 13zM15.5 15.5 20 20",
    theme: "M12 4a8 8 0 1 0 8 8 6 6 0 0 1-8-8z",
    check: "m5 12.5 4.5 4.5L19 7.5",
    alert: "M12 8.5v4.5M12 16.2v.1M10.6 4.3 2.9 17.8A1.6 1.6 0 0 0 4.3 20.2h15.4a1.6 1.6 0 0 0 1.4-2.4L13.4 4.3a1.6 1.6 0 0 0-2.8 0z",
    close: "M6 6l12 12M18 6 6 18",
    lock: "M7 11V8a5 5 0 0 1 10 0v3M6 11h12v9H6z",
    out: "M14 4H6v16h8M11 12h9M17 8.5l3.5 3.5-3.5 3.5",
    help: "M9.5 9a2.6 2.6 0 1 1 3.7 2.4c-.8.4-1.2.9-1.2 1.8v.3M12 17v.1M12 21a9 9 0 1 0 0-18 9 9 0 0 0 0 18z",
    undo: "M8.5 5 4 9.5 8.5 14M4 9.5h10a5.5 5.5 0 0 1 0 11h-3",
    download: "M12 4v11M7.5 10.5 12 15l4.5-4.5M5 20h14",
    plus: "M12 5v14M5 12h14",
    minus: "M5 12h14",
    fit: "M4 9V4h5M15 4h5v5M20 15v5h-5M9 20H4v-5",
    empty: "M4 13l2.5-8h11L20 13v6H4zM4 13h5l1.5 2.5h3L15 13h5",
};

export type IconName = keyof typeof ICONS;

export function Icon({ name }: { name: IconName }): JSX.Element {
    return (
        <svg class="icon" viewBox="0 0 24 24" aria-hidden="true">
            <path d={ICONS[name]} />
        </svg>
    );
}

interface HeadProps {
    title: Children;
    above?: Children;
    below?: Children;
    children?: Children;
}

/** The head of a view; its h1 is the title of the page. */
export function Head({ title, above, below, children }: HeadProps): JSX.Element {
    return (
        <header class="head">
            <div class="head-text">
                {above && <div class="crumbs">{above}</div>}
                <h1>{title}</h1>
                {below && <p class="below">{below}</p>}
            </div>
            {children && <div class="actions">{children}</div>}
        </header>
    );
}

interface PanelProps {
    title?: Children;
    aside?: Children;
    flush?: boolean;
    class?: string;
    children: Children;
}

export function Panel({ title, aside, flush, class: extra, children }: PanelProps): JSX.Element {
    const id = useId();
    return (
        <section class={classes("panel", flush && "flush", extra)} aria-labelledby={title ? id : undefined}>
            {title && (
                <div class="panel-head">
                    <h2 id={id}>{title}</h2>
                    {aside && <div class="panel-aside">{aside}</div>}
                </div>
            )}
            <div class="panel-body">{children}</div>
        </section>
    );
}

export function Empty({ title, children }: { title: string; children?: Children }): JSX.Element {
    return (
        <div class="empty">
            <Icon name="empty" />
            <p class="empty-title">{title}</p>
            {children && <div class="empty-text">{children}</div>}
        </div>
    );
}

export function Trouble({ text, retry }: { text: string; retry?: () => void }): JSX.Element {
    return (
        <div class="trouble" role="alert">
            <Icon name="alert" />
            <span class="grow">{text}</span>
            {retry && <Button onClick={retry}>Try again</Button>}
        </div>
    );
}

export function Skeleton({ rows = 4 }: { rows?: number }): JSX.Element {
    return (
        <div class="skeleton" role="status" aria-label="Loading">
            {Array.from({ length: rows }, (_, i) => (
                <div class="bone" key={i} />
            ))}
        </div>
    );
}

interface LoadedProps<T> {
    of: Resource<T>;
    rows?: number;
    missing?: Children;
    /** Shown where this daemon has nothing of the kind. */
    absent?: Children;
    children: (data: T) => Children;
}

/** Data, or why there is none; old data stays in sight below an error. */
export function Loaded<T>({ of, rows, missing, absent, children }: LoadedProps<T>): JSX.Element {
    if (of.missing && missing) return <>{missing}</>;
    if (of.unsupported && absent) return <>{absent}</>;
    if (of.unsupported) return <Empty title="Not available here.">{of.error}</Empty>;
    if (of.loading) return <Skeleton rows={rows} />;
    return (
        <>
            {of.error && <Trouble text={of.error} retry={of.refresh} />}
            {of.data !== null && children(of.data)}
        </>
    );
}

/** Below a list: that there is more of it, and that something of it could not be read. */
export function ListEnd({ page, more }: { page: Page<unknown>; more: () => void }): JSX.Element | null {
    const left = page.left_out ?? 0;
    if (page.next === null && !left) return null;
    return (
        <div class="end">
            {left > 0 && <p class="left-out">{plural(left, "instance")} could not be read, and {left === 1 ? "is" : "are"} not in this list.</p>}
            {page.next !== null && (
                <>
                    <span>The first {count(page.items.length)}.</span> <Button onClick={more}>Show more</Button>
                </>
            )}
        </div>
    );
}

type ButtonProps = JSX.HTMLAttributes<HTMLButtonElement> & {
    kind?: "plain" | "primary" | "danger" | "quiet";
    small?: boolean;
    busy?: boolean;
    disabled?: boolean;
    type?: "button" | "submit";
    children: Children;
};

export function Button(props: ButtonProps): JSX.Element {
    const { kind = "plain", small, busy, disabled, children, ...more } = props;
    return (
        <button
            type="button"
            {...more}
            disabled={disabled || busy}
            class={classes("button", kind, small && "small", busy && "busy")}
        >
            {children}
        </button>
    );
}

interface ActionProps {
    label: string;
    /** What is asked before it is done. */
    ask?: string;
    kind?: ButtonProps["kind"];
    small?: boolean;
    disabled?: boolean;
    run: () => Promise<unknown>;
}

/** A button for something that changes the world: asks again in its own place, tells how it went. */
export function Action({ label, ask, kind, small, disabled, run }: ActionProps): JSX.Element {
    const [step, setStep] = useState<"idle" | "asking" | "busy" | "done">("idle");
    const [error, setError] = useState<string | null>(null);
    const yes = useRef<HTMLButtonElement>(null);
    const alive = useRef(true);
    useEffect(() => () => void (alive.current = false), []);
    useEffect(() => {
        if (step === "asking") yes.current?.focus();
        if (step !== "done") return;
        const timer = setTimeout(() => setStep("idle"), 1500);
        return () => clearTimeout(timer);
    }, [step]);
    const act = async () => {
        setStep("busy");
        setError(null);
        try {
            await run();
            if (alive.current) setStep("done");
        } catch (failure) {
            if (!alive.current) return;
            setError(words(failure));
            setStep("idle");
        }
    };
    if (step === "asking")
        return (
            <span class="asking" onKeyDown={(e) => e.key === "Escape" && setStep("idle")}>
                <span>{ask}</span>
                <button ref={yes} type="button" class={classes("button danger", small && "small")} onClick={act}>
                    {label}
                </button>
                <Button kind="quiet" small={small} onClick={() => setStep("idle")}>
                    Keep
                </Button>
            </span>
        );
    return (
        <span class="action">
            <Button
                kind={kind}
                small={small}
                busy={step === "busy"}
                disabled={disabled}
                onClick={() => (ask ? setStep("asking") : void act())}
            >
                {step === "done" ? <Icon name="check" /> : null}
                {step === "done" ? "Done" : label}
            </Button>
            {error && (
                <span class="action-error" role="alert">
                    {error}
                </span>
            )}
        </span>
    );
}

/** A state, in its own colour within its machine. */
export function StateChip(props: { machine: string; name: string; stopped?: boolean; index?: number }) {
    const { machine, name, stopped, index = stateIndex(machine, name) } = props;
    return (
        <span class="chip" title={name}>
            <i class={classes("dot", stopped ? "hollow" : null, "c" + index)} />
            <span class="clip">{name}</span>
        </span>
    );
}

const TONES: Record<string, string> = {
    running: "good", completed: "good", done: "good", open: "good", free: "quiet", idle: "quiet",
    busy: "good", queued: "info", waiting: "info", held: "warn", delayed: "info", backoff: "warn",
    resting: "warn", cancelling: "warn", ending: "warn", recycling: "warn", holding: "warn",
    draining: "warn", stopping: "warn", paused: "warn", failed: "bad", fatal: "bad", stuck: "bad",
    rejected: "bad", stopped: "quiet", dead: "bad", cancelled: "quiet", force_aborted: "bad",
};

export function tone(state: string): string {
    return TONES[state] ?? "quiet";
}

export function Badge({ tone: kind, children }: { tone?: string; children: Children }): JSX.Element {
    return <span class={classes("badge", kind)}>{children}</span>;
}

export function TaskState({ state }: { state: string }): JSX.Element {
    return <Badge tone={tone(state)}>{state.replaceAll("_", " ")}</Badge>;
}

/** How long ago, counted while one looks. */
export function Ago({ time }: { time: string | null }): JSX.Element {
    const text = useTicking(time, (ms) => (ms > -1000 ? "now" : ticking(ms) + " ago"));
    if (!time) return <span class="muted">never</span>;
    return (
        <time dateTime={time} title={fullTime(time)}>
            {text}
        </time>
    );
}

/** Text that follows the clock; only the text is changed, not the view around it. */
function useTicking(time: string | null, say: (left_ms: number) => string): ReadonlySignal<string> {
    return useMemo(() => computed(() => (time ? say(millis(time) - now.value) : "")), [time]);
}

function untilClass(left_ms: number): string {
    return left_ms < -2000 ? "until late" : left_ms < 10000 ? "until soon" : "until";
}

/** How long until. */
export function Until({ time }: { time: string }): JSX.Element {
    const text = useTicking(time, (ms) => (ms > 0 ? "in " + ticking(ms) : ms > -2000 ? "due now" : ticking(ms) + " late"));
    const soon = useMemo(() => computed(() => untilClass(millis(time) - now.value)), [time]);
    return (
        <time dateTime={time} title={fullTime(time)} class={soon}>
            {text}
        </time>
    );
}

export function At({ time }: { time: string }): JSX.Element {
    return (
        <time class="at" dateTime={time} title={fullTime(time)}>
            {clock(time)}
        </time>
    );
}

/** Given up, waiting for its next attempt, or at work. */
export function EffectState({ effect }: { effect: Effect }): JSX.Element {
    const due = effect.next_at ?? null;
    const waits = useMemo(() => computed(() => due !== null && millis(due) > now.value), [due]);
    if (effect.dead) return <Badge tone="bad">dead</Badge>;
    if (effect.activity === "queued") return <Badge tone="warn">waits for a thread</Badge>;
    if (effect.activity === "running") return <Badge tone="good">running</Badge>;
    if (effect.next_at && waits.value) return <Until time={effect.next_at} />;
    return <Badge tone="good">{effect.attempts ? "retrying" : "due"}</Badge>;
}

export function Since({ time }: { time: string | null }): JSX.Element {
    const text = useTicking(time, (ms) => ticking(Math.min(0, ms)));
    if (!time) return <span class="muted">–</span>;
    return (
        <time dateTime={time} title={fullTime(time)}>
            {text}
        </time>
    );
}

export function Id({ children }: { children: string }): JSX.Element {
    return (
        <span class="id" title={children}>
            {children}
        </span>
    );
}

/** A line over the last minute. */
export function Sparkline({ values, label }: { values: number[]; label: string }): JSX.Element {
    const most = Math.max(...values, 1e-9);
    const step = 100 / Math.max(1, values.length - 1);
    const points = values.map((v, i) => [i * step, 30 - (v / most) * 27] as const);
    const line = points.map(([x, y]) => `${x.toFixed(2)},${y.toFixed(2)}`).join(" ");
    return (
        <svg class="spark" viewBox="0 0 100 32" preserveAspectRatio="none" role="img" aria-label={label}>
            <polygon points={`0,32 ${line} 100,32`} />
            <polyline points={line} />
        </svg>
    );
}

export interface Share {
    name: string;
    index: number;
    value: number;
    stopped?: number;
}

/** Counts as one bar of parts. */
export function StackedBar({ shares, label }: { shares: Share[]; label: string }): JSX.Element {
    const shown = shares.filter((share) => share.value > 0);
    return (
        <div class="stack" role="img" aria-label={label}>
            {shown.map((share) => (
                <div
                    key={share.name}
                    class={"part c" + share.index}
                    title={`${share.name}: ${share.value}`}
                    style={{ flexGrow: share.value }}
                />
            ))}
        </div>
    );
}

export function Segmented<T extends string>(props: {
    label: string;
    value: T;
    options: [T, string][];
    onChange: (value: T) => void;
}): JSX.Element {
    return (
        <div class="segmented" role="group" aria-label={props.label}>
            {props.options.map(([value, text]) => (
                <button
                    key={value}
                    type="button"
                    aria-pressed={props.value === value}
                    onClick={() => props.onChange(value)}
                >
                    {text}
                </button>
            ))}
        </div>
    );
}

export function Fold({ ms }: { ms: number }): JSX.Element {
    return (
        <div class="fold">
            <span>{span(ms)} idle</span>
        </div>
    );
}
