// SPDX-License-Identifier: MIT
// Copyright the detent authors

// The objects of the API (src/program/api/openapi.yaml), as far as the console reads them.

export type Exact = number | bigint;
export type Data = Record<string, unknown>;

/** What a spec says about a state; null: nothing. */
export type Health = "good" | "warning" | "bad" | "neutral" | null;

export interface StateCount {
    name: string;
    initial: boolean;
    final: boolean;
    health: Health;
    instances: number;
    stopped: number;
}

export interface MachineSummary {
    name: string;
    version: number;
    served: boolean;
    states: StateCount[];
    active: number;
    final: number;
    stopped: number;
    timers: number;
    effects: number;
    dead: number;
}

export interface Field {
    name: string;
    type: string;
    sensitive?: boolean;
    capacity?: number;
    optional?: boolean;
    /** The most elements of an array. */
    most?: number;
    /** The record of a nested field, the enum of a one_of. */
    of?: string;
    /** The names of an enum. */
    values?: string[];
}

export interface RecordType {
    name: string;
    fields: Field[];
}

export interface State {
    name: string;
    initial: boolean;
    final: boolean;
    health: Health;
    timeout: { after_ms: number; event: string } | null;
}

export interface Event {
    name: string;
    internal: boolean;
    unhandled: string;
    payload: string | null;
}

export interface Transition {
    from: string;
    event: string;
    outcome: string;
    to: string | null;
    guard?: string;
    if?: string;
    do?: string[];
    arm?: string[];
    disarm?: string[];
    reason?: string;
}

export interface Timer {
    timer: string;
    event: string;
    due: string;
    visit: number;
    /** These are there when it was fired in vain; a dead one is a dead letter. */
    dead?: boolean;
    attempts?: number;
    last_error?: string | null;
    reason?: string | null;
    next_at?: string | null;
}

export interface Machine {
    type: "machine";
    name: string;
    version: number;
    served: boolean;
    initial: string;
    states: State[];
    events: Event[];
    effects: { name: string; produces: string[] }[];
    transitions: Transition[];
    records: RecordType[];
    data?: string | null;
    timers?: { name: string; timeout: { after_ms: number; event: string } }[];
    findings?: Finding[];
}

export interface Finding {
    line: number;
    column: number;
    severity: "error" | "warning" | "note";
    rule: string | null;
    text: string;
    hint?: string | null;
}

export interface InstanceRow {
    machine: string;
    id: string;
    state: string;
    stopped: boolean;
    sequence: number;
    started_at: string;
    moved_at: string;
}

export interface Effect {
    type?: string;
    key: string;
    effect: string;
    attempts: number;
    dead: boolean;
    /** Of an instance: it runs, or waits for a thread. Lists do not have it. */
    activity?: "running" | "queued";
    began_at?: string;
    next_at?: string | null;
    last_error?: string | null;
    reason?: string | null;
}

export interface Instance extends InstanceRow {
    final: boolean;
    reason: string | null;
    visit: number;
    transitions: number;
    history: string[];
    data: Data;
    timers: Timer[];
    effects: Effect[];
    deferred: { event?: string }[];
}

export interface Lock {
    owner: string | null;
    until: string | null;
    fence: number;
}

export interface LockRow extends Lock {
    machine: string;
    id: string;
}

export interface Why extends Instance {
    takes: { event: string; internal: boolean }[];
    defers?: { event: string; internal: boolean }[];
    sentences: { about: string; text: string }[];
    lock: Lock | null;
}

export interface HistoryRow {
    type: "start" | "event";
    machine: string;
    id: string;
    sequence: number;
    at: string;
    state?: string;
    data?: Data;
    event?: string | null;
    from?: string;
    to?: string;
    outcome?: string;
    choice?: number;
    visit?: number;
    timeout?: boolean;
    event_id?: string | null;
    cause?: string | null;
    payload?: Data | null;
}

export interface LogRow extends HistoryRow {
    position: number;
    traceparent?: string | null;
}

export interface TimerRow extends Timer {
    machine: string;
    id: string;
}

export interface EffectRow extends Effect {
    machine: string;
    id: string;
}

export interface Task {
    kind: "task";
    id: number;
    name: string;
    group: string | null;
    slot: string | null;
    type: string;
    state: string;
    ready: boolean;
    healthy: boolean;
    attempt: number;
    failures: number;
    restarts: number;
    since: string | null;
    next_at: string | null;
    reason: string | null;
    process: number | null;
    waits_for: string | null;
    last: { outcome: string; exit_code: number | null; signal: string | number | null };
}

export interface BackoffStep {
    failures: number;
    base_ns: Exact;
    least_ns: Exact;
    most_ns: Exact;
}

export interface TaskDetail extends Task {
    backoff: BackoffStep[];
}

export interface Group {
    kind: "group";
    name: string;
    parent: string | null;
    strategy: string;
    state: string;
    members: number;
    restarts: number;
    restarts_max: number;
    window_ns: Exact;
    reason: string | null;
}

export interface Tree {
    groups: Group[];
    tasks: Task[];
}

export interface Slot {
    kind: "slot";
    name: string;
    state: string;
    durable: boolean;
    width: number;
    depth: number;
    depth_max: number | null;
    owners: number;
    owner: number | null;
    owner_name: string | null;
    since: string | null;
    started: number | null;
    rejected: number | null;
    replaced: number | null;
}

export interface Job {
    id: string;
    queue: string;
    state: string;
    attempts: number;
    work?: string;
    /** What was submitted; of a slot, JSON with `run`. */
    body?: string;
    submitted_at?: string;
    due_at?: string;
    reason?: string | null;
}

export interface Line {
    at: string;
    name: string;
    stream: "output" | "error";
    text: string;
    cut: boolean;
    dropped: number;
    missed: number;
}

export interface Status {
    version: string;
    project: string;
    process: number;
    since: string;
    state: "running" | "draining" | "stopping";
    position: number | null;
    machines: number;
    tasks: Record<string, number>;
}

export type Phase = "stopped" | "starting" | "running" | "degraded" | "stopping";

export interface Worker {
    kind: "worker";
    id: string;
    parent: string | null;
    name: string;
    worker_kind: string;
    path: string;
    depth: number;
    children: number;
    state: string;
    phase: Phase;
    life: string;
    reason: string;
    degraded_by: string | null;
    freshness: "unknown" | "never" | "stale" | "fresh";
    since: string | null;
    observed_at: string | null;
    stop_wanted: boolean;
    shutdown_wanted: boolean;
    disabled: boolean;
    circuit_open: boolean;
    action_pending: boolean;
    by_hand: boolean;
    counts: {
        transitions: number;
        observations: number;
        startups: number;
        collector_restarts: number;
        restarts: number;
        actions_done: number;
        actions_failed: number;
        failures: number;
    };
}

export interface WorkerDetail extends Worker {
    desired: Data;
    observed: Data;
    gap: Data;
    metrics: Record<string, Exact>;
    states: Record<string, { entered: number; total_ms: number }>;
}

export interface Happened {
    at: string;
    from?: string;
    to?: string;
    action?: string;
    result?: string;
    took_ms?: number;
    reason?: string;
}

export interface WorkersSummary {
    workers: number;
    by_phase: Record<Phase, number>;
    stale: number;
    degraded: number;
    circuits_open: number;
    hung: number;
    actions_running: number;
    actions_queued: number;
}

export interface Stuck {
    about: "instance" | "effect" | "task" | "group" | "slot" | "store" | "worker" | "flow";
    name: string;
    machine: string | null;
    id: string | null;
    /** Of dead letters, the first instances. */
    ids: string[];
    /** For how many it stands. */
    count: number;
    why: string;
}

export interface Rates {
    step_ns: number;
    until: string;
    events: (number | null)[];
    unhandled: (number | null)[];
    effects_failed: (number | null)[];
    restarts: (number | null)[];
}

export interface Overview {
    status: Status;
    machines: MachineSummary[];
    rates: {
        step_ns: number;
        events: number[];
        unhandled: number[];
        effects_failed: number[];
        restarts: number[];
    };
    stuck: Stuck[];
    /** Of how many `stuck` shows the first. */
    stuck_total: number;
    /** Not all dead letters were read for the counts by reason. */
    stuck_capped: boolean;
    tasks: Task[];
    slots: Slot[];
    workers: WorkersSummary | null;
}

export type StageKind = "source" | "transform" | "stateful" | "join" | "sink";

export interface Flow {
    kind: "flow";
    name: string;
    flow: string;
    state: string;
    reason: string | null;
    since: string;
    run: number | null;
    start: "auto" | "manual";
    durability: "disk" | "os" | "memory";
    rows_in: number;
    rows_out: number;
    rejected: number;
    lag: number;
    rate: number;
    restarts: number;
}

export interface FlowStage {
    name: string;
    kind: StageKind;
    connector: string | null;
    state: string | null;
    reason: string | null;
    in: number;
    out: number;
    rejected: number;
    keys: number;
    turns: number;
    blocked: number;
    end: "natural" | "truncated" | "poison" | null;
    rate: number;
}

export interface FlowEdge {
    from: string;
    to: string;
    kind: "data" | "reference" | "back";
    record: string | null;
    lag: number;
    credit: number;
    window: number;
    written: number;
    read: number;
    rate: number;
}

export interface FlowJournal {
    begin: number;
    position: number;
    acknowledged: number;
    bytes: number;
    segments: number;
    torn: number;
    writes: number;
    syncs: number;
}

export interface FlowDetail extends Flow {
    stages: FlowStage[];
    edges: FlowEdge[];
    journal: FlowJournal | null;
}

/** What changes only with the definition of the flow. */
export interface StageDefinition {
    name: string;
    kind: StageKind;
    connector: string | null;
    in: string | null;
    reference: string | null;
    out: string | null;
    key: string | null;
    reference_key: string | null;
    with: string[];
    settings: Data;
    machine: Machine;
}

export interface FlowRow {
    position: number;
    stream: string;
    sequence: number;
    kind: string;
    at: string;
    event_time?: string;
    correlation?: number;
    parent?: number | null;
    value?: Data | null;
    error?: string;
    why?: string;
    text?: string;
    fact?: string;
    stage?: string | null;
    reason?: string | null;
    rows_in?: number;
    rows_out?: number;
    rejected?: number;
    end?: string;
    rows?: number;
}

export interface FlowRows {
    items: FlowRow[];
    next: number | null;
    position: number;
    run: number;
}

export interface Sent {
    outcome: string;
    state: string;
    sequence: number;
    duplicate: boolean;
}

export interface Page<T> {
    items: T[];
    next: string | number | null;
    /** Instances that could not be read. */
    left_out?: number;
}
