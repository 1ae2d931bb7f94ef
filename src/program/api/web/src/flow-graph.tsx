// SPDX-License-Identifier: MIT
// Copyright the detent authors

// A flow as a drawing: stages with their state and rate, edges with rate, lag and credit.
import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { below, EDGE_WIDTH, flowLayout, shapeOf, type EdgeLine, type FlowLayout, type StageBox } from "./flow-layout";
import { count, rate, short } from "./format";
import type { FlowDetail, FlowEdge, FlowStage } from "./types";
import { classes, Skeleton, Trouble } from "./ui";
import { Viewport } from "./viewport";

interface Props {
    flow: FlowDetail;
    stage: string | null;
    edge: string | null;
    onStage: (name: string) => void;
    onEdge: (key: string) => void;
}

export function edgeKey(edge: FlowEdge): string {
    return `${edge.from}.${edge.to}`;
}

const TONES: Record<string, string> = {
    failing: "bad", failed: "bad", cancelling: "warn", draining: "warn", closing: "warn", emitting: "good",
    created: "quiet", opening: "info", initialized: "info", waiting: "info", drained: "quiet", cancelled: "quiet",
};

export function stageTone(state: string | null): string {
    return state === null ? "quiet" : (TONES[state] ?? "good");
}

/** A name of a file or a record, without its underscores. */
export function worded(text: string): string {
    return text.replaceAll("_", " ");
}

function useWidth() {
    const box = useRef<HTMLDivElement>(null);
    const [room, setRoom] = useState(0);
    useEffect(() => {
        const observer = new ResizeObserver(([entry]) => setRoom(Math.floor(entry.contentRect.width)));
        observer.observe(box.current!);
        return () => observer.disconnect();
    }, []);
    return { box, room };
}

export function FlowGraph(props: Props): JSX.Element {
    const { box, room } = useWidth();
    const [drawn, setDrawn] = useState<{ shape: string; layout: FlowLayout } | null>(null);
    const [error, setError] = useState(false);
    const direction = room === 0 ? null : room < 560 ? "TB" : "LR";
    const shape = shapeOf(props.flow);
    useEffect(() => {
        if (!direction) return;
        let wanted = true;
        flowLayout(props.flow, direction).then(
            (layout) => wanted && setDrawn({ shape, layout }),
            () => wanted && setError(true),
        );
        return () => void (wanted = false);
    }, [shape, direction]);
    return (
        <div class="diagram flow-graph" ref={box}>
            {error ? (
                <Trouble text="This flow could not be drawn." />
            ) : drawn?.shape === shape ? (
                <Drawing {...props} layout={drawn.layout} room={room} />
            ) : (
                <Skeleton rows={3} />
            )}
        </div>
    );
}

const PAD = 12;

function Drawing({ layout, room, flow, ...props }: Props & { layout: FlowLayout; room: number }): JSX.Element {
    // A click must not move what was clicked: the place where it begins stays.
    const first = useRef(props.stage ?? flow.stages.find((stage) => stage.kind === "source")?.name);
    const centre = layout.stages.find((box) => box.name === first.current);
    return (
        <Viewport
            label={`Graph of the flow ${flow.name}`}
            width={layout.width + 2 * PAD}
            height={layout.height + 2 * PAD}
            room={room}
            focus={centre ? { x: centre.x + PAD, y: centre.y + PAD } : null}
        >
            <g transform={`translate(${PAD} ${PAD})`}>
                {flow.edges.map((edge, i) => (
                    <EdgeMark key={edgeKey(edge)} edge={edge} line={layout.edges[i]} selected={props.edge === edgeKey(edge)} onEdge={props.onEdge} />
                ))}
                {flow.stages.map((stage, i) => (
                    <StageMark key={stage.name} stage={stage} box={layout.stages[i]} selected={props.stage === stage.name} onStage={props.onStage} />
                ))}
            </g>
        </Viewport>
    );
}

/** Enter and the space bar press it. */
function pressing(run: () => void) {
    return (event: KeyboardEvent) => {
        if (event.key !== "Enter" && event.key !== " ") return;
        event.preventDefault();
        run();
    };
}

export function fullness(edge: FlowEdge): number {
    return edge.window ? Math.min(1, Math.max(0, 1 - edge.credit / edge.window)) : 0;
}

export function creditTone(edge: FlowEdge): string {
    return edge.credit === 0 && edge.window > 0 ? "bad" : fullness(edge) > 0.5 ? "warn" : "good";
}

const BAR = 48;

interface EdgeProps {
    edge: FlowEdge;
    line: EdgeLine;
    selected: boolean;
    onEdge: (key: string) => void;
}

function EdgeMark({ edge, line, selected, onEdge }: EdgeProps): JSX.Element {
    const open = () => onEdge(edgeKey(edge));
    const text = `${edge.from} to ${edge.to}: ${rate(edge.rate)} rows a second, ${count(edge.lag)} waiting, credit ${count(edge.credit)} of ${count(edge.window)}`;
    return (
        <g
            class={classes("arrow flow-edge", edge.kind !== "data" && "dashed", edge.rate > 0 && "moving", selected && "selected")}
            role="button"
            tabindex={0}
            aria-label={text}
            aria-pressed={selected}
            onClick={open}
            onKeyDown={pressing(open)}
        >
            <title>{text}</title>
            <path class="reach" d={line.path} />
            <path class="line" d={line.path} />
            <polygon points={line.head} />
            <rect class="plate" x={line.x - EDGE_WIDTH / 2 + 2} y={line.y - 17} width={EDGE_WIDTH - 4} height="34" rx="7" />
            <text x={line.x} y={line.y - 5}>
                {rate(edge.rate)}/s
            </text>
            <rect class="credit" x={line.x - BAR / 2} y={line.y - 0.500} width={BAR} height="4" rx="2" />
            <rect class={classes("used", creditTone(edge))} x={line.x - BAR / 2} y={line.y - 0.500} width={fullness(edge) * BAR} height="4" rx="2" />
            <text class="lag" x={line.x} y={line.y + 14}>
                {edge.lag ? `${short(edge.lag)} wait` : edge.kind === "data" ? "" : edge.kind}
            </text>
        </g>
    );
}

interface StageProps {
    stage: FlowStage;
    box: StageBox;
    selected: boolean;
    onStage: (name: string) => void;
}

const COLOURS = { source: "c6", transform: "c0", stateful: "c3", join: "c3", sink: "c6" };

/** What it does: its rate while it works, else its state. */
function doing(stage: FlowStage): string {
    if (stage.state === null) return "not open";
    return stageTone(stage.state) === "good" ? `${rate(stage.rate)}/s` : worded(stage.state);
}

function StageMark({ stage, box, selected, onStage }: StageProps): JSX.Element {
    const [left, top] = [box.x - box.width / 2, box.y - box.height / 2];
    const round = stage.kind === "source" ? 24 : 8;
    const open = () => onStage(stage.name);
    const rejected = stage.rejected > 0 ? `, ${count(stage.rejected)} rejected` : "";
    return (
        <g
            class={classes("node open flow-stage", COLOURS[stage.kind], selected && "selected")}
            role="button"
            tabindex={0}
            aria-label={`${stage.name}, ${stage.kind}: ${worded(stage.state ?? "not open")}, ${rate(stage.rate)} rows a second${rejected}`}
            aria-pressed={selected}
            onClick={open}
            onKeyDown={pressing(open)}
        >
            <title>{stage.reason ?? `${stage.name}: ${worded(stage.state ?? "not open")}`}</title>
            <rect class="box" x={left} y={top} width={box.width} height={box.height} rx={round} />
            {stage.kind === "sink" && <rect class="inner" x={left + 3} y={top + 3} width={box.width - 6} height={box.height - 6} rx="5.5" />}
            {stage.kind === "join" && <path class="inner" d={`M${left + 3} ${top + 8} v${box.height - 16} M${left + box.width - 3} ${top + 8} v${box.height - 16}`} />}
            <text class="name" x={box.x} y={top + 21}>
                <tspan class={classes("state-dot", stageTone(stage.state))}>● </tspan>
                {stage.name}
            </text>
            <text class="note" x={box.x} y={top + 37}>
                {below(stage)}
            </text>
            <text class="figures" x={box.x} y={top + 54}>
                {doing(stage)}
                {stage.rejected > 0 && <tspan class="rejected">{`  ${short(stage.rejected)} rejected`}</tspan>}
            </text>
        </g>
    );
}
