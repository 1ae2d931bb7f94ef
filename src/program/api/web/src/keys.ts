// SPDX-License-Identifier: MIT
// Copyright the detent authors

// Keys: `g` and a letter goes somewhere, `/` or Ctrl-K opens the palette, `?` tells all of them.
import { signal } from "@preact/signals";
import { go, to } from "./router";
import { token } from "./session";
import type { IconName } from "./ui";

export interface Section {
    key: string;
    name: string;
    icon: IconName;
    path: string;
}

/** The places of the navigation; the keys, the palette and the help are made of this list. */
export const SECTIONS: Section[] = [
    { key: "o", name: "Overview", icon: "overview", path: to.overview() },
    { key: "m", name: "Machines", icon: "machines", path: to.machines() },
    { key: "t", name: "Timers", icon: "timers", path: to.timers() },
    { key: "e", name: "Effects", icon: "effects", path: to.effects() },
    { key: "s", name: "Supervision", icon: "tasks", path: to.tasks() },
    { key: "l", name: "Slots", icon: "slots", path: to.slots() },
    { key: "w", name: "Workers", icon: "workers", path: to.workers() },
    { key: "f", name: "Flows", icon: "flows", path: to.flows() },
    { key: "j", name: "Journal", icon: "journal", path: to.journal() },
    { key: "i", name: "Simulator", icon: "simulator", path: to.simulator() },
];

export const overlay = signal<"palette" | "help" | null>(null);
let pending = 0;

function isTyping(target: EventTarget | null): boolean {
    return target instanceof HTMLElement && target.matches("input, textarea, select");
}

function pressed(event: KeyboardEvent): void {
    if (token.value === null) return;
    const command = event.ctrlKey || event.metaKey;
    if (command && event.key.toLowerCase() === "k") {
        event.preventDefault();
        overlay.value = "palette";
        return;
    }
    if (command || event.altKey || isTyping(event.target) || overlay.value) return;
    if (Date.now() - pending < 1200) {
        pending = 0;
        const section = SECTIONS.find(({ key }) => key === event.key);
        if (section) {
            event.preventDefault();
            go(section.path);
        }
        return;
    }
    if (event.key === "g") pending = Date.now();
    else if (event.key === "/") {
        event.preventDefault();
        overlay.value = "palette";
    } else if (event.key === "?") overlay.value = "help";
}

export function start(): void {
    document.addEventListener("keydown", pressed);
}
