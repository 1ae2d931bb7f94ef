// SPDX-License-Identifier: MIT
// Copyright the detent authors

// One URL per view, by the history API.
import { signal } from "@preact/signals";
import { path, query, type Query } from "./api";

interface Place {
    segments: string[];
    search: URLSearchParams;
}

function here(): Place {
    const segments = location.pathname.split("/").filter(Boolean).map(decode);
    return { segments, search: new URLSearchParams(location.search) };
}

function decode(segment: string): string {
    try {
        return decodeURIComponent(segment);
    } catch {
        return segment;
    }
}

export const place = signal<Place>(here());

export function go(target: string, replace = false): void {
    if (target === location.pathname + location.search) return;
    if (replace) history.replaceState(null, "", target);
    else history.pushState(null, "", target);
    const moved = location.pathname !== "/" + place.value.segments.map(encodeURIComponent).join("/");
    place.value = here();
    if (moved && !replace) scrollTo(0, 0);
}

/** Changes the query of this place; what is empty is left out. */
export function amend(values: Query, replace = true): void {
    const all = Object.fromEntries(place.value.search);
    go(location.pathname + query({ ...all, ...values }), replace);
}

export const to = {
    overview: () => "/",
    machines: () => "/machines",
    machine: (name: string, values: Query = {}) => path("machines", name) + query(values),
    instance: (machine: string, id: string) => path("machines", machine, "instances", id),
    timers: () => "/timers",
    effects: (values: Query = {}) => "/effects" + query(values),
    tasks: () => "/tasks",
    task: (name: string) => path("tasks", name),
    slots: () => "/slots",
    slot: (name: string) => path("slots", name),
    workers: (values: Query = {}) => "/workers" + query(values),
    worker: (id: string) => path("workers", id.replaceAll("/", "~")),
    flows: () => "/flows",
    flow: (name: string, values: Query = {}) => path("flows", name) + query(values),
    journal: (values: Query = {}) => "/journal" + query(values),
    simulator: (values: Query = {}) => "/simulator" + query(values),
};

/** Links stay links: another tab, copying and the middle button work as everywhere. */
function clicked(event: MouseEvent): void {
    if (event.defaultPrevented || event.button !== 0) return;
    if (event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
    const link = (event.target as Element | null)?.closest?.("a");
    const target = link?.getAttribute("href");
    if (!link || !target?.startsWith("/") || link.hasAttribute("download")) return;
    event.preventDefault();
    go(target);
}

export function start(): void {
    addEventListener("popstate", () => (place.value = here()));
    document.addEventListener("click", clicked);
}
