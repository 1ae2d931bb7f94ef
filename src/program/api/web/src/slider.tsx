// SPDX-License-Identifier: MIT
// Copyright the detent authors

// The time slider: the history of an instance as a strip of its states, to be walked through.
import type { JSX } from "preact";
import { useRef } from "preact/hooks";
import { clock, millis, now, span } from "./format";
import { lasted, stateAfter, weight } from "./history";
import { stateIndex } from "./store";
import type { HistoryRow } from "./types";
import { classes } from "./ui";

interface Props {
    machine: string;
    rows: HistoryRow[];
    at: number;
    ended: boolean;
    onChange: (index: number) => void;
}

export function Slider({ machine, rows, at, ended, onChange }: Props): JSX.Element {
    const strip = useRef<HTMLDivElement>(null);
    // The last state grows as one looks, but a strip that moves all the time cannot be aimed at.
    const end = ended ? millis(rows[rows.length - 1].at) : Math.floor(now.value / 5000) * 5000;
    const weights = rows.map((_, i) => weight(lasted(rows, i, end)));
    const total = weights.reduce((sum, w) => sum + w, 0);
    const point = (event: PointerEvent) => {
        const box = strip.current!.getBoundingClientRect();
        let left = ((event.clientX - box.left) / box.width) * total;
        let index = 0;
        while (index < rows.length - 1 && left > weights[index]) left -= weights[index++];
        onChange(index);
    };
    const row = rows[at];
    const said = `${at + 1} of ${rows.length}: ${row.event ?? row.type}, ${stateAfter(row)}, ${clock(row.at)}`;
    return (
        <div class="slider">
            <input
                type="range"
                class="slider-input"
                aria-label="Time"
                aria-valuetext={said}
                min={0}
                max={rows.length - 1}
                step={1}
                value={at}
                onInput={(event) => onChange(Number(event.currentTarget.value))}
            />
            <div
                ref={strip}
                class={classes("strip", rows.length > 80 && "dense")}
                aria-hidden="true"
                onPointerDown={(event) => {
                    strip.current!.setPointerCapture(event.pointerId);
                    point(event);
                }}
                onPointerMove={(event) => event.buttons === 1 && point(event)}
            >
                {rows.map((r, i) => (
                    <div
                        key={r.sequence}
                        class={classes("segment", "c" + stateIndex(machine, stateAfter(r)), i === at && "here", i > at && "ahead")}
                        style={{ flexGrow: weights[i] }}
                        title={`${r.event ?? r.type} → ${stateAfter(r)}, ${span(lasted(rows, i, end))}`}
                    >
                        {weights[i] / total > 0.06 && stateAfter(r)}
                    </div>
                ))}
            </div>
        </div>
    );
}
