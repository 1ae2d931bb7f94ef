// SPDX-License-Identifier: MIT
// Copyright the detent authors

// What to write into detent.yaml where there is nothing yet.
import type { JSX } from "preact";
import { SNIPPETS } from "../snippets";
import { Empty } from "../ui";

function File({ of }: { of: keyof typeof SNIPPETS }): JSX.Element {
    return (
        <pre class="snippet">
            <code>{SNIPPETS[of]}</code>
        </pre>
    );
}

/** The store and what lives in it are opened when the program starts. */
function Restart(): JSX.Element {
    return (
        <>
            Then stop <code>detent up</code> and start it again.
        </>
    );
}

export function FirstMachine({ title = "No machines yet" }: { title?: string }): JSX.Element {
    return (
        <Empty title={title}>
            <code>detent new job</code> writes a first <code>job/job.fsm</code>. Serve it in <code>detent.yaml</code>:
            <File of="machines" />
            <Restart />
        </Empty>
    );
}

export function FirstTask(): JSX.Element {
    return (
        <Empty title="No tasks">
            Add tasks to <code>detent.yaml</code>:
            <File of="tasks" />
            Then <code>detent reload</code>.
        </Empty>
    );
}

export function FirstSlot(): JSX.Element {
    return (
        <Empty title="No slots">
            Add slots to <code>detent.yaml</code>; durable ones need a store:
            <File of="slots" />
            <Restart /> <code>detent submit batch -- sh report.sh</code> submits a job.
        </Empty>
    );
}

export function FirstWorker(): JSX.Element {
    return (
        <Empty title="No workers">
            Add workers to <code>detent.yaml</code>:
            <File of="workers" />
            <Restart />
        </Empty>
    );
}

export function FirstFlow(): JSX.Element {
    return (
        <Empty title="No flows">
            <code>detent new rows --from flow</code> writes a first <code>rows/rows.flow</code>. Run it in <code>detent.yaml</code>:
            <File of="flows" />
            Then <code>detent reload</code>.
        </Empty>
    );
}
