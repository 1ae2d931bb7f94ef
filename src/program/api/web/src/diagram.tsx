// SPDX-License-Identifier: MIT
// Copyright the detent authors

// A machine as a drawing, with what lives in it: counts by state, or the way of one instance.
import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { short } from "./format";
import { layout, NOTE_LINE, type Arrow, type Layout, type NodeBox } from "./layout";
import { coloursOf } from "./colours";
import type { Machine } from "./types";
import { classes, Skeleton, Trouble } from "./ui";
import { Viewport } from "./viewport";

export interface Trace {
    current: string | null;
    states: ReadonlySet<string>;
    /** The arrows that were taken, each as `arrowKey()`. */
    arrows: ReadonlySet<string>;
    /** The one that was taken last. */
    last: string | null;
    ended?: boolean;
}

export function arrowKey(from: string, event: string, to: string | null): string {
    return JSON.stringify([from, event, to]);
}

interface Props {
    machine: Machine;
    counts?: ReadonlyMap<string, number>;
    trace?: Trace;
    selected?: string | null;
    onState?: (name: string) => void;
    /** Events that can be clicked on arrows that leave the current state. */
    onEvent?: (event: string) => void;
}

export function Diagram(props: Props): JSX.Element {
    const box = useRef<HTMLDivElement>(null);
    const [drawn, setDrawn] = useState<Layout | null>(null);
    const [error, setError] = useState(false);
    const [room, setRoom] = useState(0);
    const direction = room === 0 ? null : room < 560 ? "TB" : "LR";
    useEffect(() => {
        const observer = new ResizeObserver(([entry]) => setRoom(Math.floor(entry.contentRect.width)));
        observer.observe(box.current!);
        return () => observer.disconnect();
    }, []);
    useEffect(() => {
        if (!direction) return;
        let wanted = true;
        layout(props.machine, direction).then(
            (value) => wanted && setDrawn(value),
            () => wanted && setError(true),
        );
        return () => void (wanted = false);
    }, [props.machine, direction]);
    return (
        <div class="diagram" ref={box}>
            {error ? (
                <Trouble text="This machine could not be drawn." />
            ) : drawn ? (
                <Drawing {...props} drawn={drawn} room={room} />
            ) : (
                <Skeleton rows={3} />
            )}
        </div>
    );
}

const PAD = 12;

function Drawing({ drawn, room, ...props }: Props & { drawn: Layout; room: number }): JSX.Element {
    const { machine, trace, selected } = props;
    const colours = coloursOf(machine.states);
    const centre = drawn.nodes.find((node) => node.name === (trace?.current ?? selected ?? machine.initial));
    return (
        <Viewport
            label={`Diagram of the machine ${machine.name}`}
            width={drawn.width + 2 * PAD}
            height={drawn.height + 2 * PAD}
            room={room}
            focus={centre ? { x: centre.x + PAD, y: centre.y + PAD } : null}
        >
            <g transform={`translate(${PAD} ${PAD})`}>
            {drawn.start && (
                <g class={classes("arrow", trace && "taken")}>
                    <circle class="start" cx={drawn.start.x} cy={drawn.start.y} r="5.5" />
                    <path d={drawn.start.path} />
                    <polygon points={drawn.start.head} />
                </g>
            )}
            {drawn.stop && (
                <g class={classes("stop", trace?.ended && "taken")}>
                    <circle cx={drawn.stop.x} cy={drawn.stop.y} r="9" />
                    <rect x={drawn.stop.x - 3.5} y={drawn.stop.y - 3.5} width="7" height="7" rx="1" />
                </g>
            )}
            {drawn.arrows.map((arrow, i) => (
                <ArrowMark key={i} arrow={arrow} trace={trace} onEvent={props.onEvent} />
            ))}
            {drawn.nodes.map((node) => (
                <NodeMark key={node.name} node={node} index={colours.get(node.name) ?? 0} {...props} />
            ))}
            </g>
        </Viewport>
    );
}

function ArrowMark({ arrow, trace, onEvent }: { arrow: Arrow; trace?: Trace; onEvent?: Props["onEvent"] }) {
    const keys = arrow.lines.map((line) => arrowKey(arrow.from, line.event, arrow.to));
    const taken = keys.some((key) => trace?.arrows.has(key));
    const last = keys.some((key) => trace?.last === key);
    const top = arrow.y - (arrow.lines.length * NOTE_LINE) / 2;
    const open = onEvent && trace?.current === arrow.from;
    return (
        <g class={classes("arrow", taken && "taken", last && "last", trace && !taken && "dim")}>
            <path d={arrow.path} />
            <polygon points={arrow.head} />
            {arrow.lines.map((line, i) => (
                <text
                    key={i}
                    class={classes(trace?.arrows.has(keys[i]) && "taken", open && "open")}
                    x={arrow.x}
                    y={top + i * NOTE_LINE + 11}
                    onClick={open ? () => onEvent(line.event) : undefined}
                >
                    {line.text}
                </text>
            ))}
        </g>
    );
}

function NodeMark({ node, index, counts, trace, selected, onState }: Props & { node: NodeBox; index: number }) {
    const count = counts?.get(node.name) ?? 0;
    const current = trace?.current === node.name;
    const visited = trace?.states.has(node.name);
    const [left, top] = [node.x - node.width / 2, node.y - node.height / 2];
    const middle = node.lines.length ? top + 22 : node.y + 4.5;
    const press = (event: KeyboardEvent) => {
        if (event.key !== "Enter" && event.key !== " ") return;
        event.preventDefault();
        onState?.(node.name);
    };
    return (
        <g
            class={classes(
                "node",
                "c" + index,
                node.final && "final",
                current && "current",
                trace && !visited && !current && "dim",
                selected === node.name && "selected",
                onState && "open",
                counts && count === 0 && "vacant",
            )}
            role={onState ? "button" : undefined}
            tabindex={onState ? 0 : undefined}
            aria-label={onState ? `${node.name}: ${count}` : undefined}
            aria-pressed={onState ? selected === node.name : undefined}
            onClick={onState && (() => onState(node.name))}
            onKeyDown={onState && press}
        >
            {current && !trace?.ended && (
                <rect class="pulse" x={left} y={top} width={node.width} height={node.height} rx="8" />
            )}
            <rect class="box" x={left} y={top} width={node.width} height={node.height} rx="8" />
            {node.final && (
                <rect class="inner" x={left + 3} y={top + 3} width={node.width - 6} height={node.height - 6} rx="5.5" />
            )}
            <text class="name" x={node.x} y={middle}>
                {node.name}
            </text>
            {node.lines.map((line, i) => (
                <text key={i} class="note" x={node.x} y={middle + 17 + i * NOTE_LINE}>
                    {line}
                </text>
            ))}
            {counts && count > 0 && <CountMark x={left + node.width} y={top} count={count} />}
        </g>
    );
}

function CountMark({ x, y, count }: { x: number; y: number; count: number }): JSX.Element {
    const text = short(count);
    const width = 12 + text.length * 7;
    return (
        <g class="count">
            <rect x={x - width + 7} y={y - 10} width={width} height="20" rx="10" />
            <text x={x + 7 - width / 2} y={y + 4.2}>
                {text}
            </text>
        </g>
    );
}
