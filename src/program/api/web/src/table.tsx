// SPDX-License-Identifier: MIT
// Copyright the detent authors

// A table that stays quick with ten thousand rows: only those in sight are in the document.
import type { ComponentChildren, JSX } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { go } from "./router";
import { classes } from "./ui";

export interface Column<T> {
    name: string;
    /** A track of the grid: "minmax(8rem, 2fr)". */
    width: string;
    cell: (row: T) => ComponentChildren;
    /** Numbers stand right. */
    right?: boolean;
    /** Left out in narrow windows. */
    extra?: boolean;
    /** In narrow windows on a line of its own, below the others, and as many lines as it needs. */
    below?: boolean;
    /** As many lines as it needs, also in wide windows. */
    wraps?: boolean;
    /** What a click on the head sorts the rows by. */
    sort?: (row: T) => number | string;
}

interface Props<T> {
    label: string;
    columns: Column<T>[];
    rows: T[];
    id: (row: T) => string | number;
    /** Where Enter and a click on the row lead. */
    link?: (row: T) => string;
    /** Marks a row that is new or changed. */
    mark?: (row: T) => string | null;
}

/** The height of a row that was not in sight yet. */
const ROW = 37;
/** With a line below. */
const ROW_TALL = 65;
const SPARE = 12;
const WHOLE_MAX = 120;
const NARROW = 720;

function useNarrow(): boolean {
    const [narrow, setNarrow] = useState(innerWidth < NARROW);
    useEffect(() => {
        const changed = () => setNarrow(innerWidth < NARROW);
        addEventListener("resize", changed);
        return () => removeEventListener("resize", changed);
    }, []);
    return narrow;
}

/** Heights of rows that were in sight, by their ids; those of the others are guessed. */
class Heights {
    private readonly known = new Map<string | number, number>();

    constructor(
        private readonly ids: (string | number)[] = [],
        private readonly guess = ROW,
        before?: Heights,
    ) {
        if (before && before.guess === guess) this.known = before.known;
    }

    of(index: number): number {
        return this.known.get(this.ids[index]) ?? this.guess;
    }

    /** Of the rows from `first` to before `last`. */
    sum(first: number, last: number): number {
        let height = 0;
        for (let i = first; i < last; i++) height += this.of(i);
        return height;
    }

    /** The row that stands `distance` below the first one. */
    at(distance: number): number {
        let i = 0;
        for (let height = 0; i < this.ids.length && (height += this.of(i)) <= distance; i++);
        return i;
    }

    /** Takes the heights of rows in the document, `first` and those after it; true: some have changed. */
    measure(rows: HTMLCollection, first: number): boolean {
        let changed = false;
        for (let i = 0; i < rows.length; i++) {
            const { height } = rows[i].getBoundingClientRect();
            changed ||= Math.abs(height - this.of(first + i)) > 0.5;
            this.known.set(this.ids[first + i], height);
        }
        return changed;
    }
}

/** Which rows are in sight, by the place of the body in the window, and the space of those that are not. */
function useWindow(ids: (string | number)[], guess: number) {
    const body = useRef<HTMLDivElement>(null);
    const [range, setRange] = useState<[number, number]>([0, WHOLE_MAX]);
    const [, setMeasured] = useState(0);
    const kept = useRef(new Heights());
    const whole = ids.length <= WHOLE_MAX;
    const heights = (kept.current = new Heights(ids, guess, kept.current));
    const last = whole ? ids.length : Math.min(ids.length, range[1]);
    const first = whole ? 0 : Math.min(range[0], last);
    useLayoutEffect(() => {
        if (whole) return;
        const measure = () => {
            const top = body.current?.getBoundingClientRect().top ?? 0;
            const start = Math.max(0, kept.current.at(-top) - SPARE);
            const end = kept.current.at(innerHeight - top) + SPARE;
            setRange((old) => (old[0] === start && old[1] === end ? old : [start, end]));
        };
        measure();
        // Also of a box that it is in.
        addEventListener("scroll", measure, { passive: true, capture: true });
        addEventListener("resize", measure);
        return () => {
            removeEventListener("scroll", measure, { capture: true });
            removeEventListener("resize", measure);
        };
    }, [whole, guess, ids.length]);
    useLayoutEffect(() => {
        if (!whole && heights.measure(body.current!.children, first)) setMeasured((count) => count + 1);
    });
    const space = whole ? undefined : { paddingTop: heights.sum(0, first), paddingBottom: heights.sum(last, ids.length) };
    return { body, first, last, space };
}

interface Order {
    name: string;
    down: boolean;
}

/** The rows by a column; in the order they came without one. */
function sorted<T>(rows: T[], columns: Column<T>[], order: Order | null): T[] {
    const by = columns.find((column) => column.name === order?.name)?.sort;
    if (!by) return rows;
    const sign = order!.down ? -1 : 1;
    return rows
        .map((row) => [by(row), row] as const)
        .sort(([a], [b]) => (a < b ? -sign : a > b ? sign : 0))
        .map(([, row]) => row);
}

/** Up, down, and then as they came. */
function nextOrder(order: Order | null, name: string): Order | null {
    if (order?.name !== name) return { name, down: false };
    return order.down ? null : { name, down: true };
}

function HeadCell<T>({ column, order, onOrder }: { column: Column<T>; order: Order | null; onOrder: (order: Order | null) => void }): JSX.Element {
    const own = order?.name === column.name ? order : null;
    return (
        <div
            role="columnheader"
            class={classes("td", column.right && "right")}
            aria-sort={!column.sort ? undefined : !own ? "none" : own.down ? "descending" : "ascending"}
        >
            {column.sort ? (
                <button type="button" class="sorter" onClick={() => onOrder(nextOrder(order, column.name))}>
                    {column.name}
                    <span aria-hidden="true">{own ? (own.down ? " ↓" : " ↑") : ""}</span>
                </button>
            ) : (
                column.name
            )}
        </div>
    );
}

export function Table<T>({ label, columns, rows: given, id, link, mark }: Props<T>): JSX.Element {
    const narrow = useNarrow();
    const [order, setOrder] = useState<Order | null>(null);
    const rows = sorted(given, columns, order);
    const below = narrow ? columns.filter((column) => column.below) : [];
    const { body, first, last, space } = useWindow(rows.map(id), below.length ? ROW_TALL : ROW);
    const shown = columns.filter((column) => !(narrow && (column.extra || column.below)));
    const tracks = { gridTemplateColumns: shown.map((column) => column.width).join(" ") };
    return (
        <div class="table" role="table" aria-label={label} aria-rowcount={rows.length + 1}>
            <div class="tr th" role="row" style={tracks}>
                {shown.map((column) => (
                    <HeadCell key={column.name} column={column} order={order} onOrder={setOrder} />
                ))}
            </div>
            <div ref={body} role="rowgroup" style={space}>
                {rows.slice(first, last).map((row, i) => (
                    <div
                        key={id(row)}
                        role="row"
                        aria-rowindex={first + i + 2}
                        class={classes("tr", link && "linked", below.length > 0 && "tall", mark?.(row))}
                        style={tracks}
                        onClick={link && ((event) => follow(event, link(row)))}
                    >
                        {shown.map((column) => (
                            <div key={column.name} role="cell" class={classes("td", column.right && "right", column.wraps && "wraps")}>
                                {column.cell(row)}
                            </div>
                        ))}
                        {below.map((column) => (
                            <div key={column.name} role="cell" class="td below wraps">
                                {column.cell(row)}
                            </div>
                        ))}
                    </div>
                ))}
            </div>
        </div>
    );
}

/** The whole row leads somewhere for the mouse; for the keyboard the link in it does. */
function follow(event: MouseEvent, target: string): void {
    if ((event.target as Element).closest("a, button, input, .asking")) return;
    if (getSelection()?.toString()) return;
    go(target);
}
