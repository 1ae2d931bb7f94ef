// SPDX-License-Identifier: MIT
// Copyright the detent authors

// The supervision tree: groups, and the tasks in them.
import type { JSX } from "preact";
import { post, path } from "../api";
import { nanos, plural } from "../format";
import { to } from "../router";
import { useResource } from "../resource";
import type { Group, Task, Tree } from "../types";
import { Action, Badge, classes, Head, Loaded, Panel, Since, TaskState, Until } from "../ui";
import { FirstTask } from "./first";

type Order = "restart" | "stop" | "drain";

export function order(name: string, what: Order, refresh: () => void): () => Promise<void> {
    return async () => {
        await post(path("tasks", name, what), {});
        refresh();
    };
}

export function Tasks(): JSX.Element {
    const tree = useResource<Tree>("/tree", { on: ["tasks"], every_ms: 250, poll_ms: 3000 });
    return (
        <>
            <Head title="Supervision" below="Groups and tasks: what runs, what waits, and when it is tried again." />
            <Loaded of={tree} rows={8}>
                {(data) => <Forest tree={data} refresh={tree.refresh} />}
            </Loaded>
        </>
    );
}

function Forest({ tree, refresh }: { tree: Tree; refresh: () => void }): JSX.Element {
    const names = new Set(tree.groups.map((group) => group.name));
    const roots = tree.groups.filter((group) => group.parent === null || !names.has(group.parent));
    const loose = tree.tasks.filter((task) => task.group === null || !names.has(task.group));
    if (!tree.groups.length && !tree.tasks.length)
        return (
            <Panel>
                <FirstTask />
            </Panel>
        );
    return (
        <>
            {roots.map((group) => (
                <GroupPanel key={group.name} group={group} tree={tree} refresh={refresh} depth={0} />
            ))}
            {loose.length > 0 && (
                <Panel title={roots.length ? "In no group" : "Tasks"} flush>
                    <TaskRows tasks={loose} />
                </Panel>
            )}
        </>
    );
}

interface GroupProps {
    group: Group;
    tree: Tree;
    refresh: () => void;
    depth: number;
}

function GroupPanel({ group, tree, refresh, depth }: GroupProps): JSX.Element {
    const inner = depth < 16 ? tree.groups.filter((g) => g.parent === group.name && g !== group) : [];
    const tasks = tree.tasks.filter((task) => task.group === group.name);
    return (
        <Panel
            flush
            class={depth ? "nested" : undefined}
            title={
                <span class="group-title">
                    {group.name} <TaskState state={group.state} />
                    <span class="muted normal">
                        {group.strategy}, {plural(group.members, "member")}, {group.restarts} of {group.restarts_max} restarts in {nanos(group.window_ns)}
                    </span>
                </span>
            }
            aside={
                <span class="row-actions">
                    <Action label="Restart" ask={`All ${group.members} begin anew.`} small run={order(group.name, "restart", refresh)} />
                    <Action label="Stop" ask="All members stop." small run={order(group.name, "stop", refresh)} />
                </span>
            }
        >
            {group.reason && (
                <p class={classes("group-reason", group.state === "running" && "past")}>
                    {group.state === "running" ? "restarted because of " : ""}
                    {group.reason}
                </p>
            )}
            <RestartBudget group={group} />
            <TaskRows tasks={tasks} />
            {inner.map((child) => (
                <GroupPanel key={child.name} group={child} tree={tree} refresh={refresh} depth={depth + 1} />
            ))}
        </Panel>
    );
}

/** How much of the intensity is used up: a full one takes the group down. */
function RestartBudget({ group }: { group: Group }): JSX.Element | null {
    if (!group.restarts) return null;
    const share = Math.min(1, group.restarts / Math.max(1, group.restarts_max));
    return (
        <div class="budget" title={`${group.restarts} of ${group.restarts_max} restarts`}>
            <div class={classes(share >= 0.8 ? "bad" : "warn")} style={{ width: `${share * 100}%` }} />
        </div>
    );
}

function TaskRows({ tasks }: { tasks: Task[] }): JSX.Element {
    return (
        <div class="task-rows">
            {tasks.map((task) => (
                <TaskRow key={task.id} task={task} />
            ))}
        </div>
    );
}

function TaskRow({ task }: { task: Task }): JSX.Element {
    return (
        <a class="task-row" href={to.task(task.name)}>
            <i class={classes("health", health(task))} />
            <span class="task-name">
                <span class="strong">{task.name}</span>
                {task.slot && <span class="type">in {task.slot}</span>}
            </span>
            <TaskState state={task.state} />
            <span class="task-why">{explain(task)}</span>
            <span class="task-figures">
                {task.restarts > 0 && <Badge tone="warn">{plural(task.restarts, "restart")}</Badge>}
                {task.process !== null && <span class="muted extra">process {task.process}</span>}
                <Since time={task.since} />
            </span>
        </a>
    );
}

function health(task: Task): string {
    if (task.state === "running") return task.healthy && task.ready ? "good" : "warn";
    if (["backoff", "resting"].includes(task.state)) return "warn";
    if (["failed", "stuck"].includes(task.state)) return "bad";
    return "quiet";
}

export function explain(task: Task): JSX.Element | string {
    if (task.next_at)
        return (
            <>
                starts again <Until time={task.next_at} />
                {task.reason && <>: {task.reason}</>}
            </>
        );
    if (task.waits_for) return "waits for " + task.waits_for;
    if (task.state === "running" && !task.ready) return "not ready yet";
    if (task.state === "running" && !task.healthy) return "not healthy";
    if (!task.reason) return "";
    return task.state === "running" ? "failed before: " + task.reason : task.reason;
}
