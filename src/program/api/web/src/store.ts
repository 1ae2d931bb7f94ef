// SPDX-License-Identifier: MIT
// Copyright the detent authors

// What several views need at once: the machines with their counts, and the tasks.
import { computed, signal } from "@preact/signals";
import { get } from "./api";
import { colourAlone, coloursOf } from "./colours";
import { listen } from "./live";
import { scopes, token } from "./session";
import type { Machine, MachineSummary, Status, Tree } from "./types";

export const summaries = signal<MachineSummary[] | null>(null);
export const status = signal<Status | null>(null);
export const tree = signal<Tree | null>(null);

const indexes = computed(() => new Map((summaries.value ?? []).map((machine) => [machine.name, coloursOf(machine.states)])));

/** The colour of a state. */
export function stateIndex(machine: string, name: string): number {
    return indexes.value.get(machine)?.get(name) ?? colourAlone(name);
}

const definitions = new Map<string, Promise<Machine>>();

/** As the console thinks of it: a stop leads nowhere, and lists that are empty are there. */
export function normal(machine: Machine): Machine {
    const transitions = machine.transitions.map((t) => ({
        ...t,
        guard: t.guard ?? t.if,
        to: t.outcome === "stop" ? null : t.to,
    }));
    return { ...machine, transitions, records: machine.records ?? [], effects: machine.effects ?? [] };
}

/** A definition is asked for once; a daemon that comes back may serve another. */
export function definition(name: string): Promise<Machine> {
    let known = definitions.get(name);
    if (!known) {
        known = get<Machine>("/machines/" + encodeURIComponent(name)).then(normal);
        known.catch(() => definitions.delete(name));
        definitions.set(name, known);
    }
    return known;
}

/**
 * Calls `ask`, but not more often than every `pause_ms`, and at last once more; `counts` in any case,
 * since what is counted may be half a second old.
 */
function throttle(ask: () => Promise<void>, pause_ms: number, counts = false): () => void {
    let busy = false;
    let again = false;
    const run = async () => {
        if (busy) {
            again = true;
            return;
        }
        busy = true;
        await ask().catch(() => undefined);
        setTimeout(() => {
            busy = false;
            if (!again) return;
            again = false;
            void run();
        }, pause_ms);
    };
    return () => {
        void run();
        if (counts) again = true;
    };
}

const askMachines = throttle(async () => {
    if (token.value === null) return;
    summaries.value = (await get<{ items: MachineSummary[] }>("/machines")).items;
}, 900, true);
const askTree = throttle(async () => {
    if (token.value === null) return;
    tree.value = await get<Tree>("/tree");
}, 400);
const askStatus = throttle(async () => {
    if (token.value === null) return;
    status.value = await get<Status>("/status");
}, 2000);

export function start(): void {
    listen((rows, topics) => {
        if (topics.has("all")) definitions.clear();
        if (topics.has("all") || rows.length) askMachines();
        if (topics.has("all") || topics.has("tasks")) {
            askTree();
            askStatus();
        }
    });
    token.subscribe((value) => {
        scopes.value = null;
        if (value !== null) {
            get<{ scopes: string[] }>("/session").then((answer) => token.value === value && (scopes.value = answer.scopes), () => undefined);
            return;
        }
        summaries.value = null;
        tree.value = null;
        status.value = null;
        definitions.clear();
    });
}
