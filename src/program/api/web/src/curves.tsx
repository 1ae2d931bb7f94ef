// SPDX-License-Identifier: MIT
// Copyright the detent authors

// Rates over time: curves with axes, over a span that one chooses, of the day that the daemon keeps.
import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import type uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { query } from "./api";
import { axisTimes, millis, rate } from "./format";
import { amend, place } from "./router";
import { useResource } from "./resource";
import { theme } from "./theme";
import type { Rates } from "./types";
import { Loaded, Panel, Segmented } from "./ui";

const SPANS: [string, string][] = [["300", "5 min"], ["3600", "1 h"], ["21600", "6 h"], ["86400", "24 h"]];
const SERIES = [
    ["events", "Events", "--c0"],
    ["unhandled", "Unhandled", "--c1"],
    ["effects_failed", "Effects failed", "--c5"],
    ["restarts", "Restarts", "--c3"],
] as const;
const HEIGHT = 180;

export function RatePanel(): JSX.Element {
    const wanted = place.value.search.get("span");
    const span = SPANS.find(([value]) => value === wanted)?.[0] ?? "300";
    const rates = useResource<Rates>("/rates" + query({ span_s: span }), { poll_ms: 5000 });
    return (
        <Panel
            title="Rates"
            aside={<Segmented label="Span" value={span} options={SPANS} onChange={(value) => amend({ span: value === "300" ? null : value })} />}
        >
            <Loaded of={rates} rows={4}>
                {(data) => <Curves rates={data} />}
            </Loaded>
        </Panel>
    );
}

/** Seconds since 1970, and the values of each curve; a gap where nothing was sampled. */
export function columnsOf(rates: Rates): uPlot.AlignedData {
    const step = rates.step_ns / 1e9;
    const end = millis(rates.until) / 1000;
    const count = rates.events.length;
    const times = rates.events.map((_, i) => end - (count - 1 - i) * step);
    return [times, ...SERIES.map(([name]) => rates[name])] as uPlot.AlignedData;
}

function colour(name: string): string {
    return getComputedStyle(document.documentElement).getPropertyValue(name).trim() || "gray";
}

/** The colour that a variable stands for in this theme: canvas does not know light-dark(). */
function resolved(name: string): string {
    const probe = document.createElement("span");
    probe.style.color = colour(name);
    document.body.append(probe);
    const value = getComputedStyle(probe).color;
    probe.remove();
    return value;
}

function options(width: number): uPlot.Options {
    const [text, grid] = [resolved("--muted"), resolved("--line")];
    const axis = { stroke: text, grid: { stroke: grid, width: 1 }, ticks: { stroke: grid, width: 1 }, font: "11px system-ui, sans-serif" };
    return {
        width,
        height: HEIGHT,
        legend: { live: true },
        cursor: { points: { size: 6 } },
        scales: { y: { range: (_, __, most) => [0, Math.max(1, most * 1.1)] } },
        axes: [{ ...axis, space: 70, values: (_, values) => axisTimes(values) }, { ...axis, size: 52, values: (_, values) => values.map((value) => rate(value)) }],
        series: [
            { value: "{HH}:{mm}:{ss}" },
            ...SERIES.map(([, label, name]) => ({
                label,
                stroke: resolved(name),
                width: 1.5,
                spanGaps: false,
                points: { show: false },
                value: (_: uPlot, value: number | null) => (value === null ? "–" : rate(value) + "/s"),
            })),
        ],
    };
}

function Curves({ rates }: { rates: Rates }): JSX.Element {
    const box = useRef<HTMLDivElement>(null);
    const plot = useRef<uPlot | null>(null);
    const latest = useRef(rates);
    const [failed, setFailed] = useState(false);
    const chosen = theme.value;
    latest.current = rates;
    useEffect(() => {
        let wanted = true;
        const observer = new ResizeObserver(([entry]) => plot.current?.setSize({ width: Math.floor(entry.contentRect.width), height: HEIGHT }));
        import("uplot").then(
            ({ default: Plot }) => {
                if (!wanted) return;
                plot.current = new Plot(options(box.current!.clientWidth), columnsOf(latest.current), box.current!);
                observer.observe(box.current!);
            },
            () => wanted && setFailed(true),
        );
        return () => {
            wanted = false;
            observer.disconnect();
            plot.current?.destroy();
            plot.current = null;
        };
    }, [chosen]);
    useEffect(() => plot.current?.setData(columnsOf(rates)), [rates]);
    if (failed) return <p class="muted">The curves could not be loaded.</p>;
    return <div class="curves" ref={box} role="img" aria-label="Events, unhandled events, failed effects and restarts per second over time" />;
}
