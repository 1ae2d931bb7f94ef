// SPDX-License-Identifier: MIT
// Copyright the detent authors

// The colour of a state says how it is: green is well, orange needs patience, red has gone wrong,
// grey is over. What the spec says counts; else names say it in the words people use; a state whose
// name says nothing gets a colour that means nothing. Orange, green and red are never given by chance.
//
// Two states of one machine that mean the same get different shades of it.
import type { Health } from "./types";

const GOOD = [2, 7, 8];
const WARN = [1, 9];
const BAD = [5, 10];
const OVER = [4, 11];
const PLAIN = [0, 6, 3];

const WORDS: [number[], string][] = [
    [BAD, "failed failing failure fail dead death lost error errored broken fault faulty down crashed crash declined rejected refused denied invalid expired overdue unhealthy unwell stale stuck aborted alarm critical fatal bad offline disconnected blocked late suspended"],
    [WARN, "degraded degrading warning warn retrying retry retries slow backoff throttled suspect suspicious probing partial limited delayed disputed escalated recovering reconnecting tripped draining half"],
    [GOOD, "ok good well healthy running run active alive up online connected ready open paid done completed complete succeeded success delivered shipped approved accepted confirmed verified solved resolved finished green won passed settled published enabled"],
    [OVER, "cancelled canceled stopped closed ended archived off disabled idle deleted removed gone withdrawn refunded returned abandoned silent"],
];

const MEANING = new Map(WORDS.flatMap(([colour, words]) => words.split(" ").map((word) => [word, colour] as const)));

/** The last word that means something counts: "payment_failed", "not_open" (which is not open). */
export function meaningOf(name: string): number[] | null {
    const parts = name.toLowerCase().split(/[^a-z]+/).filter(Boolean);
    for (let i = parts.length - 1; i >= 0; i--) {
        const found = MEANING.get(parts[i]);
        if (found === undefined) continue;
        const negated = ["not", "no", "un", "half"].includes(parts[i - 1]);
        return !negated ? found : found === GOOD ? WARN : null;
    }
    return null;
}

const HEALTH = { good: GOOD, warning: WARN, bad: BAD, neutral: OVER };

interface Named {
    name: string;
    final: boolean;
    health?: Health;
}

/** Of all states of a machine, in the order of its definition. */
export function coloursOf(states: Named[]): Map<string, number> {
    const used = new Map<number[], number>();
    return new Map(
        states.map(({ name, final, health }) => {
            const shades = (health && HEALTH[health]) ?? meaningOf(name) ?? (final ? OVER : PLAIN);
            const count = used.get(shades) ?? 0;
            used.set(shades, count + 1);
            return [name, shades[count % shades.length]];
        }),
    );
}

/** Of a state whose machine is not known. */
export function colourAlone(name: string): number {
    let sum = 0;
    for (const letter of name) sum = (sum * 31 + letter.charCodeAt(0)) >>> 0;
    return meaningOf(name)?.[0] ?? PLAIN[sum % PLAIN.length];
}
