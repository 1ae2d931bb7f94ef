// SPDX-License-Identifier: MIT
// Copyright the detent authors

// One slot: its figures, a form to submit a job, and the jobs of a durable one.
import type { JSX } from "preact";
import { useMemo, useState } from "preact/hooks";
import { Once, path, post, words } from "../api";
import { amend, place, to } from "../router";
import { useList, useResource } from "../resource";
import { Table, type Column } from "../table";
import type { Job, Slot } from "../types";
import { Action, Ago, Badge, Button, Empty, Head, Id, ListEnd, Loaded, Panel, Segmented, Since, TaskState, Trouble } from "../ui";
import { Fact, Meter } from "./overview";

export function SlotView({ name }: { name: string }): JSX.Element {
    const slots = useResource<{ items: Slot[] }>("/slots", { on: ["tasks"], every_ms: 250, poll_ms: 3000 });
    const slot = slots.data?.items.find((item) => item.name === name);
    return (
        <>
            <Head above={<a href={to.slots()}>Slots</a>} title={name} below={slot && <Below slot={slot} />} />
            <Loaded of={slots} rows={5}>
                {() =>
                    slot ? (
                        <>
                            <div class="columns even">
                                <Figures slot={slot} />
                                <Submit slot={slot} refresh={slots.refresh} />
                            </div>
                            {slot.durable && <Jobs name={name} />}
                        </>
                    ) : (
                        <Panel>
                            <Empty title={`There is no slot “${name}”.`}>
                                <a href={to.slots()}>All slots</a>
                            </Empty>
                        </Panel>
                    )
                }
            </Loaded>
        </>
    );
}

function Below({ slot }: { slot: Slot }): JSX.Element {
    return (
        <span class="instance-below">
            <Meter used={slot.owners} of={slot.width} />
            {slot.owner_name ? (
                <span>
                    held by <b>{slot.owner_name}</b> {slot.since && <>for <Since time={slot.since} /></>}
                </span>
            ) : (
                <span class="muted">free</span>
            )}
            {slot.durable && <Badge tone="info">durable</Badge>}
        </span>
    );
}

function Figures({ slot }: { slot: Slot }): JSX.Element {
    return (
        <Panel title="Figures">
            <div class="facts">
                <Fact name={`of ${slot.width} taken`} value={slot.owners} />
                <Fact name={slot.depth_max === null ? "waiting" : `of ${slot.depth_max} waiting`} value={slot.depth} />
                {slot.started !== null && <Fact name="started" value={slot.started} />}
                {slot.rejected !== null && <Fact name="rejected" value={slot.rejected} />}
                {slot.replaced !== null && <Fact name="replaced" value={slot.replaced} />}
            </div>
        </Panel>
    );
}

/** Words as a shell would cut them: blanks part, quotes keep together. */
export function cut(text: string): string[] {
    const words: string[] = [];
    for (const found of text.matchAll(/(?:[^\s"']+|"(?:[^"\\]|\\.)*"|'[^']*')+/g))
        words.push(found[0].replace(/"((?:[^"\\]|\\.)*)"|'([^']*)'/g, (_, a, b) => b ?? a.replace(/\\(.)/g, "$1")));
    return words;
}

/** "report-1042-03153": the program, the time of day, and the milliseconds of its minute. */
function jobName(run: string): string {
    const program = (cut(run)[0] ?? "job").split("/").pop()!.replace(/[^A-Za-z0-9._-]/g, "").slice(0, 64) || "job";
    const at = new Date();
    const digits = [at.getHours(), at.getMinutes()].map((part) => String(part).padStart(2, "0")).join("");
    return `${program}-${digits}-${String(at.getSeconds() * 1000 + at.getMilliseconds()).padStart(5, "0")}`;
}

interface Submitted {
    name: string;
    started: boolean | null;
}

function Submit({ slot, refresh }: { slot: Slot; refresh: () => void }): JSX.Element {
    const once = useMemo(() => new Once(), []);
    const [run, setRun] = useState("");
    const [job, setJob] = useState("");
    const [admission, setAdmission] = useState("queue");
    const [busy, setBusy] = useState(false);
    const [error, setError] = useState<string | null>(null);
    const [told, setTold] = useState<string | null>(null);
    const submit = async (event: Event) => {
        event.preventDefault();
        setBusy(true);
        setError(null);
        setTold(null);
        try {
            const target = path("slots", slot.name, "submissions");
            const body = { run: cut(run), ...(slot.durable ? {} : { admission }), ...(job ? { name: job } : {}) };
            // A durable slot knows a job by its name, or else by the key, which people read in the list.
            const done = slot.durable && !job ? await once.post<Submitted>(target, body, () => jobName(run)) : await post<Submitted>(target, body);
            setTold(`${done.name} ${done.started ? "runs" : "waits"}.`);
            refresh();
        } catch (failure) {
            setError(words(failure));
        }
        setBusy(false);
    };
    return (
        <Panel title="Submit a job">
            <form class="form" onSubmit={submit}>
                <div class="fields">
                    <div class="field wide">
                        <label for="job-run">Program and arguments</label>
                        <input id="job-run" type="text" class="mono" placeholder="bin/job report 3" autocomplete="off" spellcheck={false} value={run} onInput={(e) => setRun(e.currentTarget.value)} />
                    </div>
                    <div class="field">
                        <label for="job-name">Name</label>
                        <input id="job-name" type="text" placeholder="chosen for you" autocomplete="off" spellcheck={false} value={job} onInput={(e) => setJob(e.currentTarget.value)} />
                    </div>
                    {!slot.durable && (
                        <div class="field">
                            <label for="job-admission">If it is taken</label>
                            <select id="job-admission" value={admission} onChange={(e) => setAdmission(e.currentTarget.value)}>
                                <option value="queue">wait</option>
                                <option value="replace">replace who waits</option>
                                <option value="replace-all">replace everybody</option>
                                <option value="drop">give up</option>
                            </select>
                        </div>
                    )}
                </div>
                {error && <Trouble text={error} />}
                <div class="form-foot">
                    <Button type="submit" kind="primary" busy={busy} disabled={!cut(run).length}>
                        Submit
                    </Button>
                    <span role="status">{told}</span>
                </div>
            </form>
        </Panel>
    );
}

/** A word as a shell would take it. */
function quoted(word: string): string {
    if (/^[\w@%+=:,./-]+$/.test(word)) return word;
    return word.includes("'") ? `"${word.replace(/["\\]/g, "\\$&")}"` : `'${word}'`;
}

/** The program of a job and its arguments; else the name of the work. */
export function programOf(job: Job): string {
    try {
        const { run } = JSON.parse(job.body ?? "") as { run: string | string[] };
        return typeof run === "string" ? run : run.map(quoted).join(" ");
    } catch {
        return job.work ?? "–";
    }
}

type JobState = "all" | "queued" | "delayed" | "running" | "done" | "failed";

function Jobs({ name }: { name: string }): JSX.Element {
    const state = (place.value.search.get("state") ?? "all") as JobState;
    const jobs = useList<Job>(path("slots", name, "submissions"), { state: state === "all" ? null : state }, { on: ["tasks", "log"], every_ms: 500, poll_ms: 2000 });
    const change = (job: Job, what: "retry" | "cancel") => async () => {
        await post(path("slots", name, "submissions", job.id, what), {});
        jobs.refresh();
    };
    const columns: Column<Job>[] = [
        { name: "Job", width: "minmax(8rem, 2fr)", wraps: true, cell: (job) => <span class="clip"><Id>{job.id}</Id></span> },
        { name: "Program", width: "minmax(8rem, 2fr)", cell: (job) => <code class="clip" title={programOf(job)}>{programOf(job)}</code>, below: true, wraps: true },
        { name: "State", width: "7rem", sort: (job) => job.state, cell: (job) => <TaskState state={job.state} /> },
        { name: "Attempts", width: "5.5rem", right: true, sort: (job) => job.attempts, cell: (job) => job.attempts, extra: true },
        { name: "Submitted", width: "8rem", right: true, sort: (job) => job.submitted_at ?? "", cell: (job) => <Ago time={job.submitted_at ?? null} />, extra: true },
        { name: "Reason", width: "minmax(6rem, 2fr)", cell: (job) => <span class="clip muted" title={job.reason ?? ""}>{job.reason ?? "–"}</span>, below: true, wraps: true },
        {
            name: "",
            width: "minmax(7rem, 1.2fr)",
            right: true,
            cell: (job) =>
                job.state === "failed" ? (
                    <Action label="Retry" small run={change(job, "retry")} />
                ) : job.state !== "done" ? (
                    <Action label="Cancel" ask="Sure?" small run={change(job, "cancel")} />
                ) : null,
        },
    ];
    return (
        <Panel
            title="Jobs"
            flush
            aside={
                <Segmented
                    label="Which"
                    value={state}
                    options={[["all", "All"], ["queued", "Queued"], ["delayed", "Delayed"], ["running", "Running"], ["failed", "Failed"], ["done", "Done"]]}
                    onChange={(value) => amend({ state: value === "all" ? null : value })}
                />
            }
        >
            <Loaded of={jobs} rows={4}>
                {(page) => (
                    <>
                        {page.items.length ? <Table label="Jobs" columns={columns} rows={page.items} id={(job) => job.id} /> : <Empty title="No jobs here." />}
                        <ListEnd page={page} more={jobs.more} />
                    </>
                )}
            </Loaded>
        </Panel>
    );
}
