// SPDX-License-Identifier: MIT
// Copyright the detent authors

// Dark or light: as the system has it, or as was project.
import { signal } from "@preact/signals";

export type Theme = "system" | "light" | "dark";

const KEY = "detent.theme";
export const theme = signal<Theme>("system");

export function next(): void {
    const dark = matchMedia("(prefers-color-scheme: dark)").matches;
    const order: Theme[] = dark ? ["system", "light", "dark"] : ["system", "dark", "light"];
    theme.value = order[(order.indexOf(theme.value) + 1) % order.length];
}

export function start(): void {
    try {
        const kept = localStorage.getItem(KEY);
        if (kept === "light" || kept === "dark") theme.value = kept;
    } catch {
        // Without storage the system's choice stands.
    }
    theme.subscribe((value) => {
        if (value === "system") delete document.documentElement.dataset.theme;
        else document.documentElement.dataset.theme = value;
        try {
            localStorage.setItem(KEY, value);
        } catch {
            // It lasts as long as the page, then.
        }
    });
}
