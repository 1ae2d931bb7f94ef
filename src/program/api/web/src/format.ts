// SPDX-License-Identifier: MIT
// Copyright the detent authors

// Times, spans and numbers for people.
import { signal } from "@preact/signals";
import type { Exact } from "./types";

/** The clock of countdowns: four times a second, and not while nobody looks. */
export const now = signal(Date.now());

export function startClock(): void {
    setInterval(() => {
        if (!document.hidden) now.value = Date.now();
    }, 250);
}

export function millis(time: string): number {
    return Date.parse(time);
}

const UNITS: [string, number][] = [["d", 86400], ["h", 3600], ["m", 60], ["s", 1]];

/** A span in at most two units: 3 d 4 h, 12 s, 1.4 s, 35 ms. */
export function span(ms: number): string {
    const whole = Math.abs(ms);
    if (whole < 1000) return `${Math.round(whole)} ms`;
    if (whole < 9950) return `${(whole / 1000).toFixed(1).replace(/\.0$/, "")} s`;
    let left = Math.round(whole / 1000);
    const parts: string[] = [];
    for (const [name, seconds] of UNITS) {
        const count = Math.floor(left / seconds);
        left -= count * seconds;
        if (count) parts.push(`${count} ${name}`);
        else if (parts.length) break;
        if (parts.length === 2) break;
    }
    return parts.join(" ");
}

/** Seconds only, for what counts down or up before one's eyes. */
export function ticking(ms: number): string {
    const whole = Math.abs(ms);
    return whole < 1000 ? "<1 s" : span(Math.floor(whole / 1000) * 1000);
}

export function nanos(ns: Exact): string {
    return span(Number(ns) / 1e6);
}

const CLOCK = new Intl.DateTimeFormat(undefined, {
    hour: "2-digit", minute: "2-digit", second: "2-digit", hour12: false,
});
const DAY = new Intl.DateTimeFormat(undefined, { month: "short", day: "numeric" });
const FULL = new Intl.DateTimeFormat(undefined, { dateStyle: "full", timeStyle: "long" });

/** 14:03:59.123; of another day without the fraction, so that it takes no more room. */
export function clock(time: string, fraction = true): string {
    const at = new Date(millis(time));
    if (Number.isNaN(at.getTime())) return time;
    const part = fraction ? "." + String(at.getMilliseconds()).padStart(3, "0") : "";
    const today = new Date().toDateString() === at.toDateString();
    return today ? CLOCK.format(at) + part : `${DAY.format(at)}, ${CLOCK.format(at)}`;
}

export function fullTime(time: string): string {
    const at = millis(time);
    return Number.isNaN(at) ? time : `${FULL.format(at)}\n${time}`;
}

export function count(value: Exact): string {
    return value.toLocaleString("en-US").replaceAll(",", "\u202f");
}

export function short(value: number): string {
    if (value < 10000) return count(value);
    if (value < 1e6) return `${(value / 1e3).toFixed(value < 1e5 ? 1 : 0)} k`;
    return `${(value / 1e6).toFixed(1)} M`;
}

export function rate(value: number): string {
    if (value === 0) return "0";
    if (value < 10) return value.toFixed(1);
    return short(Math.round(value));
}

/** The last part of a path. */
export function base(path: string): string {
    return path.replace(/\/+$/, "").split("/").pop() || path;
}

export function plural(value: number, one: string, many = one + "s"): string {
    return `${count(value)} ${value === 1 ? one : many}`;
}

const MINUTES = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", hour12: false });

/** Times of day along an axis, in seconds since 1970; with seconds where minutes would repeat. */
export function axisTimes(times: number[]): string[] {
    const labels = times.map((time) => MINUTES.format(time * 1000));
    return new Set(labels).size === labels.length ? labels : times.map((time) => CLOCK.format(time * 1000));
}
