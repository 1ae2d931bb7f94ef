// SPDX-License-Identifier: MIT
// Copyright the detent authors

// The events that an instance takes now, as buttons; those with a payload open a form.
import type { JSX } from "preact";
import { useEffect, useMemo, useState } from "preact/hooks";
import { Once, path, words } from "../api";
import { dataOf, isValid, recordOf, RecordForm, type Draft } from "../form";
import type { Machine, RecordType, Sent, Why } from "../types";
import { Button, Icon, Panel, StateChip, Trouble } from "../ui";

interface Props {
    why: Why;
    machine: Machine | null;
    /** The view looks back: nothing can be sent to the past. */
    past: boolean;
    refresh: () => void;
    back: () => void;
}

export function SendEvents({ why, machine, past, refresh, back }: Props): JSX.Element {
    const [chosen, setChosen] = useState<string | null>(null);
    const [error, setError] = useState<string | null>(null);
    const [busy, setBusy] = useState<string | null>(null);
    const [sent, setSent] = useState<(Sent & { name: string }) | null>(null);
    const once = useMemo(() => new Once(), []);
    const defers = (why.defers ?? []).filter((item) => !item.internal).map((item) => item.event);
    const takes = [...why.takes.filter((item) => !item.internal).map((item) => item.event), ...defers];
    const inner = why.takes.filter((item) => item.internal).map((item) => item.event);
    const legal = takes.join(" ");
    useEffect(() => {
        if (chosen !== null && !takes.includes(chosen)) setChosen(null);
    }, [legal]);
    const payload = (event: string) => recordOf(machine!, machine!.events.find((e) => e.name === event)?.payload);
    const send = async (event: string, data: object) => {
        setBusy(event);
        setError(null);
        setSent(null);
        try {
            const target = path("machines", why.machine, "instances", why.id, "events");
            const answer = await once.post<Sent>(target, { event, ...data });
            setSent({ ...answer, name: event });
            setChosen(null);
            refresh();
        } catch (failure) {
            setError(words(failure));
        }
        setBusy(null);
    };
    if (past)
        return (
            <Panel title="Send an event">
                <p class="muted">You are looking at the past.</p>
                <Button onClick={back}>Back to now</Button>
            </Panel>
        );
    return (
        <Panel title="Send an event" aside={inner.length > 0 && <span class="muted clip">by itself: {inner.join(", ")}</span>}>
            {why.stopped && <p class="muted">It has stopped: it takes no more events.</p>}
            {!why.stopped && takes.length === 0 && (
                <p class="muted">In {why.state} it takes nothing from outside{inner.length ? "; it waits for what its effects and timers say" : ""}.</p>
            )}
            {!why.stopped && (
                <div class="events">
                    {takes.map((event) => (
                        <Button
                            key={event}
                            busy={busy === event}
                            disabled={!machine}
                            aria-expanded={machine && payload(event) ? chosen === event : undefined}
                            onClick={() => (payload(event) ? setChosen(chosen === event ? null : event) : void send(event, {}))}
                        >
                            {event}
                            {defers.includes(event) && <span class="muted"> (deferred)</span>}
                        </Button>
                    ))}
                </div>
            )}
            {chosen !== null && machine && payload(chosen) && (
                <PayloadForm key={chosen} event={chosen} record={payload(chosen)!} busy={busy !== null} send={(payload) => void send(chosen, { payload })} />
            )}
            {error && <Trouble text={error} />}
            {sent && (
                <p class="sent" role="status">
                    <Icon name="check" /> {sent.name}: {said(sent)} <StateChip machine={why.machine} name={sent.state} />
                </p>
            )}
        </Panel>
    );
}

/** What became of it; a repeat is told as what the first one did. */
function said(sent: Sent): string {
    const outcome = sent.outcome === "goto" ? "now" : sent.outcome;
    return sent.duplicate ? `taken the first time, ${outcome}` : outcome;
}

interface FormProps {
    event: string;
    record: RecordType;
    busy: boolean;
    send: (data: object) => void;
}

function PayloadForm({ event, record, busy, send }: FormProps): JSX.Element {
    const [draft, setDraft] = useState<Draft>({});
    const submit = (e: Event) => {
        e.preventDefault();
        send(dataOf(record, draft, true));
    };
    return (
        <form class="form" onSubmit={submit} aria-label={`Payload of ${event}`}>
            <RecordForm record={record} draft={draft} whole onChange={setDraft} />
            <div class="form-foot">
                <Button type="submit" kind="primary" busy={busy} disabled={!isValid(record, draft, true)}>
                    Send {event}
                </Button>
            </div>
        </form>
    );
}
