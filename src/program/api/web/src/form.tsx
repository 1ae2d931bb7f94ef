// SPDX-License-Identifier: MIT
// Copyright the detent authors

// A form made of the fields of a record. Numbers stay texts until they are written, so that all
// their digits arrive.
//
// A payload is whole: every field of it that is not optional is needed. The data of a new instance is
// not: what is left out is zero.
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

/** Whether nothing means something: an empty text, a false. */
function hasZero(field: Field): boolean {
    return isPlain(field) && ["str", "bool"].includes(base(field));
}

/** The record of a draft; what was left empty is left out, unless the record must be whole. */
export function dataOf(record: RecordType, draft: Draft, whole = false): Data {
    const data: Data = {};
    for (const field of record.fields) {
        const text = draft[field.name] ?? "";
        if (text !== "" || (whole && !field.optional && hasZero(field))) data[field.name] = value(field, text);
    }
    return data;
}

function isMissing(field: Field, text: string, whole: boolean): boolean {
    return whole && text === "" && !field.optional && !hasZero(field);
}

export function isValid(record: RecordType | null, draft: Draft, whole = false): boolean {
    const good = (field: Field, text: string) => complaint(field, text) === null && !isMissing(field, text, whole);
    return !record || record.fields.every((field) => good(field, draft[field.name] ?? ""));
}

interface Props {
    record: RecordType;
    draft: Draft;
    whole?: boolean;
    onChange: (draft: Draft) => void;
}

export function RecordForm({ record, draft, whole = false, onChange }: Props): JSX.Element {
    return (
        <div class="fields">
            {record.fields.map((field) => (
                <FieldInput
                    key={field.name}
                    field={field}
                    text={draft[field.name] ?? ""}
                    whole={whole}
                    onInput={(text) => onChange({ ...draft, [field.name]: text })}
                />
            ))}
        </div>
    );
}

/** Its type as a definition writes it: `str(24)`, `one_of(currency)`. */
export function kindOf(field: Field): string {
    const inside = field.of ?? capacity(field);
    const kind = inside !== undefined && !field.type.includes("(") ? `${field.type}(${inside})` : field.type;
    return kind + (field.most !== undefined ? `, up to ${field.most}` : "") + (field.optional ? ", optional" : "");
}

function placeholder(field: Field, whole: boolean): string {
    if (!isPlain(field)) return "JSON";
    if (isMissing(field, "", whole)) return "needed";
    return base(field) === "str" ? "" : "0";
}

/** What stands for a choice that was not made. */
function unchosen(field: Field, whole: boolean): string | null {
    if (!whole || field.optional) return "not set";
    return base(field) === "bool" ? null : "choose";
}

function FieldInput(props: { field: Field; text: string; whole: boolean; onInput: (text: string) => void }) {
    const { field, text, whole, onInput } = props;
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
    const choices = base(field) === "bool" ? ["false", "true"] : values(field);
    const none = unchosen(field, whole);
    return (
        <div class="field">
            <label for={id}>
                {field.name} <span class="type">{kindOf(field) + (field.sensitive ? ", sensitive" : "")}</span>
            </label>
            {choices ? (
                <select {...common} value={text || (none === null ? "false" : "")} onChange={(e) => onInput(e.currentTarget.value)}>
                    {none !== null && <option value="">{none}</option>}
                    {choices.map((choice) => (
                        <option key={choice}>{choice}</option>
                    ))}
                </select>
            ) : (
                <input
                    {...common}
                    type={field.sensitive ? "password" : "text"}
                    inputMode={INTEGER.test(base(field)) ? "numeric" : undefined}
                    placeholder={placeholder(field, whole)}
                    onInput={(e) => onInput(e.currentTarget.value)}
                />
            )}
            <span class="hint" id={id + "-hint"}>
                {wrong ?? ""}
            </span>
        </div>
    );
}
