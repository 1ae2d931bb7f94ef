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
    /** In narrow windows on a line of its own, below the others. */
    below?: boolean;
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

const ROW = 36;
/** With a line below. */
const ROW_TALL = 60;
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

/** Which rows are in sight, by the place of the body in the window. */
function useWindow(total: number, height: number) {
    const body = useRef<HTMLDivElement>(null);
    const [range, setRange] = useState<[number, number]>([0, WHOLE_MAX]);
    const whole = total <= WHOLE_MAX;
    useLayoutEffect(() => {
        if (whole) return;
        const measure = () => {
            const top = body.current?.getBoundingClientRect().top ?? 0;
            const first = Math.max(0, Math.floor(-top / height) - SPARE);
            const count = Math.ceil(innerHeight / height) + 2 * SPARE;
            setRange((old) => (old[0] === first && old[1] === first + count ? old : [first, first + count]));
        };
        measure();
        addEventListener("scroll", measure, { passive: true });
        addEventListener("resize", measure);
        return () => {
            removeEventListener("scroll", measure);
            removeEventListener("resize", measure);
        };
    }, [whole, height]);
    return { body, range: whole ? ([0, total] as [number, number]) : range, whole };
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
    const height = below.length ? ROW_TALL : ROW;
    const { body, range, whole } = useWindow(rows.length, height);
    const shown = columns.filter((column) => !(narrow && (column.extra || column.below)));
    const tracks = { gridTemplateColumns: shown.map((column) => column.width).join(" ") };
    const last = Math.min(rows.length, range[1]);
    const first = Math.min(range[0], last);
    return (
        <div class="table" role="table" aria-label={label} aria-rowcount={rows.length + 1}>
            <div class="tr th" role="row" style={tracks}>
                {shown.map((column) => (
                    <HeadCell key={column.name} column={column} order={order} onOrder={setOrder} />
                ))}
            </div>
            <div
                ref={body}
                role="rowgroup"
                style={whole ? undefined : { paddingTop: first * height, paddingBottom: (rows.length - last) * height }}
            >
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
                            <div key={column.name} role="cell" class={classes("td", column.right && "right")}>
                                {column.cell(row)}
                            </div>
                        ))}
                        {below.map((column) => (
                            <div key={column.name} role="cell" class="td below">
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
