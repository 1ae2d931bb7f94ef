// SPDX-License-Identifier: MIT
// Copyright the detent authors

// A form made of the fields of a record. Numbers stay texts until they are written, so that all
// their digits arrive.
import type { JSX } from "preact";
import { useId } from "preact/hooks";
import { parse } from "./json";
import type { Data, Field, Machine, RecordType } from "./types";

export type Draft = Record<string, string>;

const INTEGER = /^([ui])(8|16|32|64)$/;

export function recordOf(machine: Machine, name: string | null | undefined): RecordType | null {
    return (name && machine.records.find((record) => record.name === name)) || null;
}

/** `str(24)` and `{type: "str", capacity: 24}` mean the same. */
function base(field: Field): string {
    return field.type.replace(/\(.*$/, "");
}

function capacity(field: Field): number | undefined {
    const inside = /\(([0-9]+)\)$/.exec(field.type);
    return field.capacity ?? (inside ? Number(inside[1]) : undefined);
}

function isPlain(field: Field): boolean {
    const known = INTEGER.test(base(field)) || ["bool", "f64", "str", "time", "one_of"].includes(base(field));
    return known && field.most === undefined;
}

function values(field: Field): string[] | null {
    return field.values?.length ? field.values : null;
}

/** What is wrong with a text for a field, or null. */
export function complaint(field: Field, text: string): string | null {
    const kind = base(field);
    if (text === "") return null;
    const integer = INTEGER.exec(kind);
    if (!isPlain(field)) return readable(text) ? null : "not JSON";
    if (integer) {
        if (!/^-?[0-9]+$/.test(text)) return "a whole number";
        const bits = BigInt(integer[2]) - (integer[1] === "i" ? 1n : 0n);
        const least = integer[1] === "i" ? -(1n << bits) : 0n;
        const most = (1n << bits) - 1n;
        const value = BigInt(text);
        return value < least || value > most ? `from ${least} to ${most}` : null;
    }
    if (kind === "f64") return Number.isFinite(Number(text)) ? null : "a number";
    if (kind === "time") return Number.isNaN(Date.parse(text)) ? "a time, as 2026-01-31T12:00:00Z" : null;
    const most = capacity(field);
    const size = new TextEncoder().encode(text).length;
    return kind === "str" && most !== undefined && size > most ? `at most ${most} bytes` : null;
}

function readable(text: string): boolean {
    try {
        parse(text);
        return true;
    } catch {
        return false;
    }
}

function value(field: Field, text: string): unknown {
    const kind = base(field);
    if (!isPlain(field)) return parse(text);
    if (INTEGER.test(kind)) return BigInt(text);
    if (kind === "f64") return Number(text);
    if (kind === "bool") return text === "true";
    return text;
}

/** The record of a draft; what was left empty is left out. */
export function dataOf(record: RecordType, draft: Draft): Data {
    const data: Data = {};
    for (const field of record.fields) {
        const text = draft[field.name] ?? "";
        if (text !== "") data[field.name] = value(field, text);
    }
    return data;
}

export function isValid(record: RecordType | null, draft: Draft): boolean {
    return !record || record.fields.every((f) => complaint(f, draft[f.name] ?? "") === null);
}

interface Props {
    record: RecordType;
    draft: Draft;
    onChange: (draft: Draft) => void;
}

export function RecordForm({ record, draft, onChange }: Props): JSX.Element {
    return (
        <div class="fields">
            {record.fields.map((field) => (
                <FieldInput
                    key={field.name}
                    field={field}
                    text={draft[field.name] ?? ""}
                    onInput={(text) => onChange({ ...draft, [field.name]: text })}
                />
            ))}
        </div>
    );
}

function describe(field: Field): string {
    const most = capacity(field);
    const inside = field.of ?? most;
    const kind = inside !== undefined && !field.type.includes("(") ? `${field.type}(${inside})` : field.type;
    return kind + (field.most !== undefined ? `, up to ${field.most}` : "") + (field.optional ? ", optional" : "") + (field.sensitive ? ", sensitive" : "");
}

function FieldInput(props: { field: Field; text: string; onInput: (text: string) => void }) {
    const { field, text, onInput } = props;
    const id = useId();
    const wrong = complaint(field, text);
    const common = {
        id,
        value: text,
        "aria-invalid": wrong !== null,
        "aria-describedby": id + "-hint",
        autoComplete: "off",
        spellcheck: false,
    };
    const choices = base(field) === "bool" ? ["true", "false"] : values(field);
    return (
        <div class="field">
            <label for={id}>
                {field.name} <span class="type">{describe(field)}</span>
            </label>
            {choices ? (
                <select {...common} onChange={(e) => onInput(e.currentTarget.value)}>
                    <option value="">not set</option>
                    {choices.map((choice) => (
                        <option key={choice}>{choice}</option>
                    ))}
                </select>
            ) : (
                <input
                    {...common}
                    type={field.sensitive ? "password" : "text"}
                    inputMode={INTEGER.test(base(field)) ? "numeric" : undefined}
                    placeholder={isPlain(field) ? (base(field) === "str" ? "" : "0") : "JSON"}
                    onInput={(e) => onInput(e.currentTarget.value)}
                />
            )}
            <span class="hint" id={id + "-hint"}>
                {wrong ?? ""}
            </span>
        </div>
    );
}
