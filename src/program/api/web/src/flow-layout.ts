// SPDX-License-Identifier: MIT
// Copyright the detent authors

// Where the stages and edges of a flow stand. It depends on names alone: figures change in place.
import { curve, graphviz, inches, NODE_FONT, NOTE_FONT, space, textWidth, type Drawn } from "./layout";
import type { FlowDetail, FlowEdge, FlowStage } from "./types";

export interface StageBox {
    name: string;
    x: number;
    y: number;
    width: number;
    height: number;
}

export interface EdgeLine {
    path: string;
    head: string;
    /** The middle of its figures. */
    x: number;
    y: number;
}

export interface FlowLayout {
    width: number;
    height: number;
    stages: StageBox[];
    edges: EdgeLine[];
}

export const EDGE_WIDTH = 72;
export const EDGE_HEIGHT = 36;
const STAGE_HEIGHT = 66;
const STAGE_LEAST = 158;

export function below(stage: FlowStage): string {
    return stage.connector ? `${stage.kind} · ${stage.connector}` : stage.kind;
}

function widthOf(stage: FlowStage): number {
    const widths = [textWidth(stage.name, NODE_FONT) + 18, textWidth(below(stage), NOTE_FONT)];
    return Math.max(STAGE_LEAST, ...widths.map((width) => width + 28));
}

function dot(stages: StageBox[], edges: FlowEdge[], direction: "LR" | "TB"): string {
    const numbers = new Map(stages.map((stage, i) => [stage.name, i]));
    const lines = [
        "digraph {",
        `rankdir=${direction}; ranksep=0.14; nodesep=0.3; splines=true; pad=0.1;`,
        'node [shape=box, fixedsize=true, label=""]; edge [arrowsize=0.7];',
    ];
    stages.forEach((stage, i) => lines.push(`n${i} [width="${inches(stage.width)}", height="${inches(stage.height)}"];`));
    edges.forEach((edge, i) => {
        const free = edge.kind === "back" ? ", constraint=false" : "";
        const label = space(EDGE_WIDTH, EDGE_HEIGHT);
        lines.push(`n${numbers.get(edge.from)} -> n${numbers.get(edge.to)} [comment="${i}", label=${label}${free}];`);
    });
    lines.push("}");
    return lines.join("\n");
}

function placed(stages: StageBox[], edges: FlowEdge[], drawn: Drawn): FlowLayout {
    const [, , width, height] = drawn.bb.split(",").map(Number);
    const at = (text: string) => {
        const [x, y] = text.split(",").map(Number);
        return { x, y: height - y };
    };
    const objects = new Map((drawn.objects ?? []).map((object) => [object.name, at(object.pos)]));
    const lines = new Map((drawn.edges ?? []).map((edge) => [edge.comment, edge]));
    return {
        width,
        height,
        stages: stages.map((stage, i) => ({ ...stage, ...objects.get("n" + i)! })),
        edges: edges.map((_, i) => {
            const edge = lines.get(String(i))!;
            return { ...curve(edge.pos, height), ...at(edge.lp ?? "0,0") };
        }),
    };
}

/** The same for flows with the same drawing. */
export function shapeOf(flow: FlowDetail): string {
    return JSON.stringify([flow.stages.map((s) => [s.name, s.kind, s.connector]), flow.edges.map((e) => [e.from, e.to, e.kind])]);
}

export async function flowLayout(flow: FlowDetail, direction: "LR" | "TB"): Promise<FlowLayout> {
    const engine = await graphviz();
    const stages = flow.stages.map((stage) => ({ name: stage.name, x: 0, y: 0, width: widthOf(stage), height: STAGE_HEIGHT }));
    return placed(stages, flow.edges, engine.renderJSON(dot(stages, flow.edges, direction)) as Drawn);
}
