// SPDX-License-Identifier: MIT
// Copyright the detent authors

// The command palette, and the help on keys.
import type { JSX } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { get, query } from "./api";
import { overlay, SECTIONS } from "./keys";
import { go, to } from "./router";
import { summaries, tree } from "./store";
import type { Flow, InstanceRow } from "./types";
import { classes, Icon, type IconName } from "./ui";

interface Entry {
    name: string;
    hint: string;
    icon: IconName;
    path: string;
}

/** All that is known without asking. */
function known(): Entry[] {
    return [
        ...SECTIONS.map((s) => ({ name: s.name, hint: "view", icon: s.icon, path: s.path })),
        ...(summaries.value ?? []).map((m) => ({
            name: m.name, hint: "machine", icon: "machines" as const, path: to.machine(m.name),
        })),
        ...(tree.value?.tasks ?? []).map((t) => ({
            name: t.name, hint: "task", icon: "tasks" as const, path: to.task(t.name),
        })),
    ];
}

/** How well a name fits what was typed: the beginning of a word is best; null does not fit. */
function fit(name: string, typed: string): number | null {
    const at = name.toLowerCase().indexOf(typed);
    if (at < 0) return null;
    return at === 0 ? 0 : /[^a-z0-9]/i.test(name[at - 1]) ? 1 : 2;
}

/** Instances whose id begins with what was typed, of every machine. */
function useInstances(typed: string): Entry[] {
    const [found, setFound] = useState<Entry[]>([]);
    useEffect(() => {
        setFound([]);
        if (!/^[A-Za-z0-9._:-]{1,128}$/.test(typed)) return;
        const abort = new AbortController();
        const timer = setTimeout(async () => {
            const all = await Promise.all((summaries.value ?? []).map((m) => byPrefix(m.name, typed, abort.signal)));
            if (!abort.signal.aborted) setFound(all.flat());
        }, 120);
        return () => {
            clearTimeout(timer);
            abort.abort();
        };
    }, [typed]);
    return found;
}

/** Flows, asked for once when the palette opens. */
function useFlowEntries(): Entry[] {
    const [found, setFound] = useState<Entry[]>([]);
    useEffect(() => {
        get<{ items: Flow[] }>("/flows").then(
            ({ items }) => setFound(items.map((flow) => ({ name: flow.name, hint: `flow · ${flow.state}`, icon: "flows", path: to.flow(flow.name) }))),
            () => undefined,
        );
    }, []);
    return found;
}

/** The id just before the first that begins with `prefix`, for `after`. */
export function before(prefix: string): string {
    const last = prefix.charCodeAt(prefix.length - 1);
    // Ids are letters, digits and ._:- ; nothing of that is just below '-', so cut it off.
    const lower = "-.0123456789:ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz";
    const index = lower.indexOf(String.fromCharCode(last));
    const head = prefix.slice(0, -1);
    return index <= 0 ? head : head + lower[index - 1] + "z".repeat(Math.max(0, 100 - prefix.length));
}

async function byPrefix(machine: string, prefix: string, signal: AbortSignal): Promise<Entry[]> {
    try {
        const target = `/machines/${encodeURIComponent(machine)}/instances`;
        const page = await get<{ items: InstanceRow[] }>(target + query({ after: before(prefix), limit: 6 }), { signal });
        return page.items
            .filter((row) => row.id.startsWith(prefix))
            .map((row) => ({
                name: row.id, hint: `${machine} · ${row.state}`, icon: "machines" as const, path: to.instance(machine, row.id),
            }));
    } catch {
        return [];
    }
}

function close(): void {
    overlay.value = null;
}

/** A dialog over the page: Escape and a click beside it close it, and the focus goes back. */
function Overlay({ label, children }: { label: string; children: JSX.Element | JSX.Element[] }) {
    // Before it is painted: who sees it can close it.
    useLayoutEffect(() => {
        const came = document.activeElement as HTMLElement | null;
        const pressed = (event: KeyboardEvent) => event.key === "Escape" && close();
        document.addEventListener("keydown", pressed);
        return () => {
            document.removeEventListener("keydown", pressed);
            came?.focus?.();
        };
    }, []);
    return (
        <div class="overlay" onClick={(event) => event.target === event.currentTarget && close()}>
            <div class="dialog" role="dialog" aria-modal="true" aria-label={label}>
                {children}
            </div>
        </div>
    );
}

export function Palette(): JSX.Element {
    const [typed, setTyped] = useState("");
    const [chosen, setChosen] = useState(0);
    const input = useRef<HTMLInputElement>(null);
    const list = useRef<HTMLUListElement>(null);
    const instances = useInstances(typed.trim());
    const word = typed.trim().toLowerCase();
    const flows = useFlowEntries();
    const entries = [...known(), ...flows]
        .map((entry) => ({ entry, rank: fit(entry.name, word) }))
        .filter(({ rank }) => rank !== null)
        .sort((a, b) => a.rank! - b.rank!)
        .map(({ entry }) => entry)
        .slice(0, 10)
        .concat(instances.slice(0, 12));
    const at = Math.min(chosen, entries.length - 1);
    useLayoutEffect(() => input.current?.focus(), []);
    useEffect(() => list.current?.children[at]?.scrollIntoView({ block: "nearest" }), [at]);
    const choose = (entry: Entry | undefined) => {
        if (!entry) return;
        close();
        go(entry.path);
    };
    const pressed = (event: KeyboardEvent) => {
        const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
        if (step) setChosen((at + step + entries.length) % Math.max(1, entries.length));
        else if (event.key === "Enter") choose(entries[at]);
        else return;
        event.preventDefault();
    };
    return (
        <Overlay label="Find or jump">
            <div class="palette-input">
                <Icon name="search" />
                <input
                    ref={input}
                    type="text"
                    role="combobox"
                    aria-label="View, machine, task, or the beginning of an instance's id"
                    aria-expanded="true"
                    aria-controls="palette-list"
                    aria-activedescendant={entries.length ? `palette-${at}` : undefined}
                    placeholder="View, machine, task, or the beginning of an id"
                    autocomplete="off"
                    spellcheck={false}
                    value={typed}
                    onInput={(event) => {
                        setTyped(event.currentTarget.value);
                        setChosen(0);
                    }}
                    onKeyDown={pressed}
                />
                <kbd>esc</kbd>
            </div>
            <ul id="palette-list" role="listbox" aria-label="Places" ref={list}>
                {entries.map((entry, i) => (
                    <li
                        key={entry.hint + entry.path}
                        id={`palette-${i}`}
                        role="option"
                        aria-selected={i === at}
                        class={classes(i === at && "chosen")}
                        onPointerMove={() => setChosen(i)}
                        onClick={() => choose(entry)}
                    >
                        <Icon name={entry.icon} />
                        <span class="grow">{entry.name}</span>
                        <span class="muted">{entry.hint}</span>
                    </li>
                ))}
            </ul>
            <div class="palette-none" hidden={entries.length > 0}>
                Nothing is called “{typed}”.
            </div>
        </Overlay>
    );
}

const KEYS: [string[], string][] = [
    [["/"], "Find or jump (also Ctrl K)"],
    [["?"], "This list"],
    [["esc"], "Close, or keep instead of confirm"],
    [["←", "→"], "On the time slider: the event before, the event after"],
    [["home", "end"], "On the time slider: the start, now"],
];

export function Help(): JSX.Element {
    const button = useRef<HTMLButtonElement>(null);
    useEffect(() => button.current?.focus(), []);
    return (
        <Overlay label="Keys">
            <div class="help-head">
                <h2>Keys</h2>
                <button ref={button} type="button" class="tool" aria-label="Close" onClick={close}>
                    <Icon name="close" />
                </button>
            </div>
            <div class="help-list">
                {SECTIONS.map((section) => (
                    <HelpRow key={section.key} keys={["g", section.key]} text={section.name} />
                ))}
                {KEYS.map(([keys, text]) => (
                    <HelpRow key={text} keys={keys} text={text} />
                ))}
            </div>
        </Overlay>
    );
}

function HelpRow({ keys, text }: { keys: string[]; text: string }): JSX.Element {
    return (
        <div class="help-row">
            <span class="grow">{text}</span>
            <span class="keys">
                {keys.map((key) => (
                    <kbd key={key}>{key}</kbd>
                ))}
            </span>
        </div>
    );
}
