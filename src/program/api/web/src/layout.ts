// SPDX-License-Identifier: MIT
// Copyright the detent authors

// Where the states and arrows of a machine stand.
//
// GraphViz gets only boxes of known sizes and says where they go; no text reaches it and no
// drawing comes back. The console draws them itself, so names stay text whatever is in them.
import type { Viz } from "@viz-js/viz";
import { span } from "./format";
import type { Machine, Transition } from "./types";

export interface NodeBox {
    name: string;
    lines: string[];
    x: number;
    y: number;
    width: number;
    height: number;
    initial: boolean;
    final: boolean;
}

export interface Arrow {
    from: string;
    to: string | null;
    /** One line for each event, with what it does. */
    lines: { event: string; text: string }[];
    path: string;
    head: string;
    x: number;
    y: number;
    width: number;
}

export interface Layout {
    width: number;
    height: number;
    nodes: NodeBox[];
    arrows: Arrow[];
    start: { x: number; y: number; path: string; head: string } | null;
    stop: { x: number; y: number } | null;
}

export const NODE_FONT = "600 13px";
export const NOTE_FONT = "550 11px";
const NODE_LINE = 18;
export const NOTE_LINE = 15;

let context: CanvasRenderingContext2D | null = null;

export function textWidth(text: string, font: string): number {
    context ??= document.createElement("canvas").getContext("2d")!;
    context.font = `${font} ${getComputedStyle(document.body).fontFamily}`;
    return Math.ceil(context.measureText(text).width);
}

function eventText(transition: Transition): string {
    const guard = transition.guard ? ` [${transition.guard}]` : "";
    const effects = transition.do?.length ? ` / ${transition.do.join(", ")}` : "";
    return transition.event + guard + effects;
}

/** What stands in a state below its name: its timeout, and the events that do not leave it. */
function notes(machine: Machine, name: string): string[] {
    const state = machine.states.find((s) => s.name === name);
    const lines: string[] = [];
    if (state?.timeout) lines.push(`◷ ${span(state.timeout.after_ms)} → ${state.timeout.event}`);
    for (const t of machine.transitions)
        if (t.from === name && t.outcome === "stay") lines.push("↻ " + eventText(t));
    return lines;
}

interface Group {
    from: string;
    to: string | null;
    lines: { event: string; text: string }[];
}

/** Transitions between the same two states share one arrow. */
function group(machine: Machine): Group[] {
    const groups = new Map<string, Group>();
    for (const t of machine.transitions) {
        if (t.outcome === "stay") continue;
        const key = JSON.stringify([t.from, t.to]);
        const found = groups.get(key) ?? { from: t.from, to: t.to, lines: [] };
        found.lines.push({ event: t.event, text: eventText(t) });
        groups.set(key, found);
    }
    return [...groups.values()];
}

/** A label of a size and nothing else. */
export function space(width: number, height: number): string {
    const size = `width="${width}" height="${height}"`;
    return `<<table border="0" cellspacing="0" cellpadding="0" fixedsize="true" ${size}><tr><td></td></tr></table>>`;
}

export function inches(points: number): string {
    return (points / 72).toFixed(4);
}

interface Sized {
    nodes: NodeBox[];
    arrows: (Group & { width: number })[];
}

function measure(machine: Machine): Sized {
    const nodes = machine.states.map((state) => {
        const lines = notes(machine, state.name);
        const widths = lines.map((line) => textWidth(line, NOTE_FONT));
        const width = Math.max(72, textWidth(state.name, NODE_FONT) + 16, ...widths) + 24;
        const height = 20 + NODE_LINE + lines.length * NOTE_LINE;
        return { ...state, lines, width, height, x: 0, y: 0 };
    });
    const arrows = group(machine).map((arrow) => ({
        ...arrow,
        width: Math.max(...arrow.lines.map((line) => textWidth(line.text, NOTE_FONT))) + 10,
    }));
    return { nodes, arrows };
}

function dot(machine: Machine, sized: Sized, direction: "LR" | "TB"): string {
    const numbers = new Map(machine.states.map((state, i) => [state.name, i]));
    const lines = [
        "digraph {",
        `rankdir=${direction}; ranksep=0.45; nodesep=0.34; splines=true; pad=0.1;`,
        'node [shape=box, fixedsize=true, label=""]; edge [arrowsize=0.7];',
        'start [shape=circle, width="0.16", height="0.16"];',
        `start -> n${numbers.get(machine.initial) ?? 0};`,
    ];
    sized.nodes.forEach((node, i) =>
        lines.push(`n${i} [width="${inches(node.width)}", height="${inches(node.height)}"];`),
    );
    if (sized.arrows.some((arrow) => arrow.to === null))
        lines.push('stop [shape=circle, width="0.26", height="0.26"];');
    sized.arrows.forEach((arrow, i) => {
        const from = "n" + numbers.get(arrow.from);
        const to = arrow.to === null ? "stop" : "n" + numbers.get(arrow.to);
        const label = space(arrow.width, arrow.lines.length * NOTE_LINE + 2);
        lines.push(`${from} -> ${to} [comment="${i}", label=${label}];`);
    });
    lines.push("}");
    return lines.join("\n");
}

let viz: Promise<Viz> | null = null;

export function graphviz(): Promise<Viz> {
    viz ??= import("@viz-js/viz").then((module) => module.instance());
    viz.catch(() => (viz = null));
    return viz;
}

type Point = [number, number];

/** "e,x,y x,y x,y ..." is the tip, then a start and triples of a Bézier curve. */
export function curve(text: string, height: number): { path: string; head: string } {
    let tip: Point | null = null;
    const points: Point[] = [];
    for (const word of text.split(" ")) {
        const numbers = word.replace(/^[es],/, "").split(",").map(Number);
        const point: Point = [numbers[0], height - numbers[1]];
        if (word.startsWith("e,")) tip = point;
        else if (!word.startsWith("s,")) points.push(point);
    }
    const show = ([x, y]: Point) => `${x.toFixed(1)} ${y.toFixed(1)}`;
    const path = `M${show(points[0])} C${points.slice(1).map(show).join(" ")}`;
    return { path, head: tip ? arrowHead(points[points.length - 1], tip) : "" };
}

function arrowHead(from: Point, tip: Point): string {
    const length = Math.hypot(tip[0] - from[0], tip[1] - from[1]) || 1;
    const [x, y] = [(tip[0] - from[0]) / length, (tip[1] - from[1]) / length];
    const wing = (side: number): Point => [
        tip[0] - 8 * x - side * 3.6 * y,
        tip[1] - 8 * y + side * 3.6 * x,
    ];
    return [tip, wing(1), wing(-1)].map((p) => p.map((n) => n.toFixed(1)).join(",")).join(" ");
}

export interface Drawn {
    bb: string;
    objects?: { name: string; pos: string }[];
    edges?: { comment?: string; pos: string; lp?: string }[];
}

function place(sized: Sized, drawn: Drawn): Layout {
    const [, , width, height] = drawn.bb.split(",").map(Number);
    const at = (text: string): { x: number; y: number } => {
        const [x, y] = text.split(",").map(Number);
        return { x, y: height - y };
    };
    const objects = new Map((drawn.objects ?? []).map((o) => [o.name, at(o.pos)]));
    const edges = new Map((drawn.edges ?? []).map((e) => [e.comment ?? "start", e]));
    const arrows = sized.arrows.map((arrow, i) => {
        const edge = edges.get(String(i))!;
        return { ...arrow, ...curve(edge.pos, height), ...at(edge.lp ?? "0,0") };
    });
    const start = objects.get("start");
    return {
        width,
        height,
        nodes: sized.nodes.map((node, i) => ({ ...node, ...objects.get("n" + i)! })),
        arrows,
        start: start ? { ...start, ...curve(edges.get("start")!.pos, height) } : null,
        stop: objects.get("stop") ?? null,
    };
}

const known = new WeakMap<Machine, Map<string, Promise<Layout>>>();

export function layout(machine: Machine, direction: "LR" | "TB"): Promise<Layout> {
    const all = known.get(machine) ?? new Map<string, Promise<Layout>>();
    known.set(machine, all);
    let found = all.get(direction);
    if (!found) {
        found = graphviz().then((engine) => {
            const sized = measure(machine);
            const drawn = engine.renderJSON(dot(machine, sized, direction)) as Drawn;
            return place(sized, drawn);
        });
        all.set(direction, found);
    }
    return found;
}
