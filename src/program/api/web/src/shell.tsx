// SPDX-License-Identifier: MIT
// Copyright the detent authors

// The frame: navigation, connection, palette and help around the view.
import { Component, type ComponentChildren, type JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { base, now, ticking } from "./format";
import { overlay, SECTIONS } from "./keys";
import { condition, connection, retry } from "./live";
import { Help, Palette } from "./palette";
import { place } from "./router";
import { leave } from "./session";
import { status, summaries, tree } from "./store";
import { next, theme } from "./theme";
import { classes, Head, Icon, Panel, Trouble } from "./ui";

export function Logo(): JSX.Element {
    return (
        <svg class="logo" viewBox="0 0 32 32" aria-hidden="true">
            <rect width="32" height="32" rx="8" />
            <path d="M16 6.5a9.500 9.5 0 1 0 9.5 9.5" />
            <circle cx="22.7" cy="9.3" r="2.6" />
            <circle cx="16" cy="16" r="2.6" />
        </svg>
    );
}

/** What stands behind a section's name: how much there is to see there. */
function badge(path: string): { text: string; tone: string } | null {
    const machines = summaries.value ?? [];
    const dead = machines.reduce((sum, m) => sum + m.dead, 0);
    const ill = (tree.value?.tasks ?? []).filter((t) => ["backoff", "failed", "resting"].includes(t.state));
    if (path === "/effects" && dead) return { text: String(dead), tone: "bad" };
    if (path === "/tasks" && ill.length) return { text: String(ill.length), tone: "warn" };
    return null;
}

function Navigation(): JSX.Element {
    const first = place.value.segments[0];
    const nav = useRef<HTMLElement>(null);
    // In a narrow window the row of views is longer than the window.
    useEffect(() => {
        nav.current?.querySelector("[aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" });
    }, [first]);
    return (
        <nav aria-label="Views" ref={nav}>
            {SECTIONS.map(({ key, name, icon, path }) => {
                const here = path === "/" ? first === undefined : path === "/" + first;
                const mark = badge(path);
                return (
                    <a key={path} href={path} class="nav" aria-current={here ? "page" : undefined} title={`${name} (g ${key})`}>
                        <Icon name={icon} />
                        <span>{name}</span>
                        {mark && <span class={classes("nav-mark", mark.tone)}>{mark.text}</span>}
                    </a>
                );
            })}
        </nav>
    );
}

function ConnectionState(): JSX.Element {
    const state = connection.value;
    if (state.state === "waiting") {
        const left = state.until - now.value;
        return (
            <div class="connection waiting">
                <i class="lamp" />
                <span class="grow" title={state.why}>
                    <span role="status">Offline</span>
                    <span class="muted">{left > 0 ? `, retrying in ${ticking(left)}` : ", retrying"}</span>
                </span>
                <button type="button" class="link" onClick={retry}>
                    Now
                </button>
            </div>
        );
    }
    const live = state.state === "live";
    return (
        <div class={classes("connection", state.state)}>
            <i class="lamp" />
            <span role="status">{live ? "Live" : "Connecting"}</span>
        </div>
    );
}

/** What is wrong with the daemon as a whole, on every view, for as long as it is. */
function Ailing(): JSX.Element | null {
    const { state, away } = condition.value ?? { state: "running", away: null };
    if (away !== null) return <Trouble text={`The store cannot be reached: ${away}. The data shown may be outdated; it reconnects automatically.`} />;
    if (state === "running") return null;
    return <Trouble text={`The daemon is ${state}: it starts nothing new, and running work completes.`} />;
}

/** A view that fails says so, and leaves the frame as it is. */
class Safe extends Component<{ children: ComponentChildren }, { failed: boolean }> {
    state = { failed: false };

    static getDerivedStateFromError(): { failed: boolean } {
        return { failed: true };
    }

    componentDidCatch(error: unknown): void {
        console.error(error);
    }

    render(): ComponentChildren {
        if (!this.state.failed) return this.props.children;
        return (
            <>
                <Head title="This view has failed" />
                <Panel>
                    <Trouble text="The daemon sent an answer that the console cannot read." retry={() => this.setState({ failed: false })} />
                </Panel>
            </>
        );
    }
}

export function Shell({ children }: { children: ComponentChildren }): JSX.Element {
    const here = place.value.segments;
    const folder = status.value?.project;
    const project = folder && base(folder);
    const section = SECTIONS.find(({ path }) => path === "/" + (here[0] ?? ""));
    useEffect(() => {
        const name = here.length > 1 ? here[here.length - 1] : section?.name;
        document.title = [name, project, "detent"].filter(Boolean).join(" · ");
    }, [here.join("/"), project]);
    const chosen = theme.value;
    return (
        <div class="shell">
            <a class="skip" href="#main" onClick={skip}>
                Skip to the view
            </a>
            <aside class="side" inert={overlay.value !== null}>
                <a href="/" class="brand" title={folder}>
                    <Logo />
                    <span class="brand-text">
                        <span class="brand-name">detent</span>
                        {project && <span class="brand-project clip">{project}</span>}
                    </span>
                </a>
                <button type="button" class="find" onClick={() => (overlay.value = "palette")} aria-label="Find or jump">
                    <Icon name="search" />
                    <span class="grow">Jump to…</span>
                    <kbd>/</kbd>
                </button>
                <Navigation />
                <div class="side-foot">
                    <ConnectionState />
                    <div class="tools">
                        <button type="button" class="tool" onClick={next} title={`Theme: ${chosen}`} aria-label={`Theme: ${chosen}`}>
                            <Icon name="theme" />
                        </button>
                        <button type="button" class="tool" onClick={() => (overlay.value = "help")} title="Keys (?)" aria-label="Keys">
                            <Icon name="help" />
                        </button>
                        <button type="button" class="tool" onClick={() => void leave()} title="Sign out" aria-label="Sign out">
                            <Icon name="out" />
                        </button>
                    </div>
                </div>
            </aside>
            <main id="main" tabIndex={-1} inert={overlay.value !== null}>
                <Ailing />
                <Safe key={here.join("/")}>{children}</Safe>
            </main>
            {overlay.value === "palette" && <Palette />}
            {overlay.value === "help" && <Help />}
        </div>
    );
}

function skip(event: MouseEvent): void {
    event.preventDefault();
    document.getElementById("main")?.focus();
}
