// SPDX-License-Identifier: MIT
// Copyright the detent authors

// A window on a drawing that may be larger than its place: fit, zoom and pan.
//
// The drawing is fitted into its place as long as its text stays legible. A larger one begins at a
// legible scale, centred on what matters; drag, Ctrl and wheel, the buttons, or the keys + - 0 and
// the arrows move it.
import type { ComponentChildren, JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { Icon, type IconName } from "./ui";

const LEGIBLE = 0.85;
const SCALE_MIN = 0.1;
const SCALE_MAX = 4;
const ENLARGED_MAX = 1.15;
const STEP = 1.25;
const HEIGHT_MAX = 560;
const DRAG_PX = 4;

interface Place {
    x: number;
    y: number;
    scale: number;
}

interface Props {
    label: string;
    width: number;
    height: number;
    /** The width of its place on the page. */
    room: number;
    /** What is centred when the drawing does not fit. */
    focus: { x: number; y: number } | null;
    children: ComponentChildren;
}

function clamp(value: number, least: number, most: number): number {
    return least > most ? (least + most) / 2 : Math.min(most, Math.max(least, value));
}

/** The scale at which all of it is seen. */
export function fitting(width: number, height: number, room: number): number {
    return Math.min(ENLARGED_MAX, room / width, HEIGHT_MAX / height);
}

/** Where it begins. */
export function beginning({ width, height, room, focus }: Omit<Props, "label" | "children">): Place {
    const all = fitting(width, height, room);
    const middle = { x: width / 2, y: height / 2 };
    return all >= LEGIBLE ? { ...middle, scale: all } : { ...(focus ?? middle), scale: LEGIBLE };
}

/** Keeps the drawing in the window: no edge of it is further in than it must be. */
export function within(place: Place, width: number, height: number, room: number, tall: number): Place {
    const [w, h] = [room / place.scale / 2, tall / place.scale / 2];
    return { scale: place.scale, x: clamp(place.x, w, width - w), y: clamp(place.y, h, height - h) };
}

export function Viewport(props: Props): JSX.Element {
    const { label, width, height, room, focus, children } = props;
    const start = beginning(props);
    const tall = Math.min(HEIGHT_MAX, Math.ceil(height * Math.max(start.scale, Math.min(1, room / width))));
    const [moved, setMoved] = useState<Place | null>(null);
    const shown = within(moved ?? start, width, height, room, tall);
    const drag = useRef<{ x: number; y: number; from: Place; far: boolean } | null>(null);
    const svg = useRef<SVGSVGElement>(null);
    const fits = fitting(width, height, room) >= LEGIBLE;
    useEffect(() => setMoved(null), [room, width, height, focus?.x, focus?.y]);

    const zoom = (factor: number, at?: { x: number; y: number }) => {
        const scale = clamp(shown.scale * factor, SCALE_MIN, SCALE_MAX);
        const [x, y] = [at?.x ?? shown.x, at?.y ?? shown.y];
        const keep = shown.scale / scale;
        setMoved({ scale, x: x + (shown.x - x) * keep, y: y + (shown.y - y) * keep });
    };
    const fit = () => setMoved({ x: width / 2, y: height / 2, scale: fitting(width, height, room) });
    const move = (x: number, y: number) => setMoved({ ...shown, x: shown.x + x / shown.scale, y: shown.y + y / shown.scale });

    // A listener of its own: a passive one cannot keep the page from zooming.
    useEffect(() => {
        const element = svg.current!;
        const wheel = (event: WheelEvent) => {
            if (!event.ctrlKey && !event.metaKey) return;
            event.preventDefault();
            const box = element.getBoundingClientRect();
            const at = {
                x: shown.x + (event.clientX - box.left - box.width / 2) / shown.scale,
                y: shown.y + (event.clientY - box.top - box.height / 2) / shown.scale,
            };
            zoom(Math.exp(-event.deltaY / 300), at);
        };
        element.addEventListener("wheel", wheel, { passive: false });
        return () => element.removeEventListener("wheel", wheel);
    });

    const down = (event: PointerEvent) => {
        if (event.button === 0) drag.current = { x: event.clientX, y: event.clientY, from: shown, far: false };
    };
    const follow = (event: PointerEvent) => {
        const held = drag.current;
        if (!held) return;
        const [x, y] = [event.clientX - held.x, event.clientY - held.y];
        if (!held.far && Math.hypot(x, y) < DRAG_PX) return;
        if (!held.far) svg.current?.setPointerCapture(event.pointerId);
        held.far = true;
        setMoved({ ...held.from, x: held.from.x - x / held.from.scale, y: held.from.y - y / held.from.scale });
    };
    /** The click that ends a drag selects nothing. */
    const click = (event: MouseEvent) => {
        if (drag.current?.far) event.stopPropagation();
        drag.current = null;
    };
    /** What is reached by key comes into sight. */
    const reached = (event: FocusEvent) => {
        const target = event.target as Element;
        if (target === svg.current || !target.matches(":focus-visible")) return;
        const [own, all] = [target.getBoundingClientRect(), svg.current!.getBoundingClientRect()];
        if (own.left >= all.left && own.right <= all.right && own.top >= all.top && own.bottom <= all.bottom) return;
        move(own.left + own.width / 2 - all.left - all.width / 2, own.top + own.height / 2 - all.top - all.height / 2);
    };
    const pressed = (event: KeyboardEvent) => {
        const act: Record<string, () => void> = {
            "+": () => zoom(STEP), "=": () => zoom(STEP), "-": () => zoom(1 / STEP), "0": fit,
            ArrowLeft: () => move(-60, 0), ArrowRight: () => move(60, 0), ArrowUp: () => move(0, -60), ArrowDown: () => move(0, 60),
        };
        if (event.ctrlKey || event.metaKey || event.altKey || !act[event.key]) return;
        event.preventDefault();
        act[event.key]();
    };

    return (
        <div class={fits && !moved ? "viewport whole" : "viewport"}>
            <svg
                ref={svg}
                viewBox={`${shown.x - room / shown.scale / 2} ${shown.y - tall / shown.scale / 2} ${room / shown.scale} ${tall / shown.scale}`}
                style={{ height: tall }}
                role="group"
                aria-label={label}
                tabindex={0}
                class={drag.current?.far ? "dragged" : undefined}
                onPointerDown={down}
                onPointerMove={follow}
                onPointerUp={() => !drag.current?.far && (drag.current = null)}
                onPointerCancel={() => (drag.current = null)}
                onClickCapture={click}
                onKeyDown={pressed}
                onFocusIn={reached}
            >
                {children}
            </svg>
            <div class="viewport-tools" role="group" aria-label="Zoom">
                <Tool icon="plus" label="Zoom in" run={() => zoom(STEP)} />
                <Tool icon="minus" label="Zoom out" run={() => zoom(1 / STEP)} />
                <Tool icon="fit" label="Show all of it" run={fit} />
            </div>
        </div>
    );
}

function Tool({ icon, label, run }: { icon: IconName; label: string; run: () => void }): JSX.Element {
    return (
        <button type="button" class="tool" title={label} aria-label={label} onClick={run}>
            <Icon name={icon} />
        </button>
    );
}
