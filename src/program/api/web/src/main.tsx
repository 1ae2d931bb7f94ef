// SPDX-License-Identifier: MIT
// Copyright the detent authors

// The console of detent: sign-in, frame, and one view for each URL.
import { effect } from "@preact/signals";
import { render } from "preact";
import type { JSX } from "preact";
import { Shell } from "./shell";
import { startClock } from "./format";
import { start as startKeys } from "./keys";
import { start as startLive } from "./live";
import { forget } from "./resource";
import { place, start as startRouter } from "./router";
import { start as startSession, token } from "./session";
import { start as startStore } from "./store";
import { start as startTheme } from "./theme";
import { Effects } from "./views/effects";
import { FlowView } from "./views/flow";
import { Flows } from "./views/flows";
import { InstanceView } from "./views/instance";
import { Journal } from "./views/journal";
import { MachineView } from "./views/machine";
import { Machines } from "./views/machines";
import { Missing } from "./views/missing";
import { OverviewView } from "./views/overview";
import { SignIn } from "./views/sign-in";
import { Simulator } from "./views/simulator";
import { SlotView } from "./views/slot";
import { Slots } from "./views/slots";
import { TaskView } from "./views/task";
import { Tasks } from "./views/tasks";
import { Timers } from "./views/timers";
import { WorkerView } from "./views/worker";
import { Workers } from "./views/workers";
import "./style/base.css";
import "./style/parts.css";
import "./style/views.css";
import "./style/flows.css";

function View(): JSX.Element {
    const [section, name, part, id, ...rest] = place.value.segments;
    if (section === undefined) return <OverviewView />;
    if (section === "machines") {
        if (name === undefined) return <Machines />;
        if (part === undefined) return <MachineView key={name} name={name} />;
        if (part === "instances" && id !== undefined && !rest.length)
            return <InstanceView key={JSON.stringify([name, id])} machine={name} id={id} />;
    }
    if (section === "tasks" && part === undefined)
        return name === undefined ? <Tasks /> : <TaskView key={name} name={name} />;
    if (section === "slots" && part === undefined)
        return name === undefined ? <Slots /> : <SlotView key={name} name={name} />;
    if (section === "workers" && part === undefined)
        return name === undefined ? <Workers /> : <WorkerView key={name} id={name.replaceAll("~", "/")} />;
    if (section === "flows" && part === undefined)
        return name === undefined ? <Flows /> : <FlowView key={name} name={name} />;
    if (name === undefined) {
        if (section === "timers") return <Timers />;
        if (section === "effects") return <Effects />;
        if (section === "journal") return <Journal />;
        if (section === "simulator") return <Simulator />;
    }
    return <Missing />;
}

function App(): JSX.Element {
    if (token.value === null) return <SignIn />;
    return (
        <Shell>
            <View />
        </Shell>
    );
}

async function main(): Promise<void> {
    startTheme();
    startRouter();
    startClock();
    startKeys();
    startStore();
    await startSession();
    startLive();
    effect(() => {
        if (token.value === null) forget();
    });
    render(<App />, document.getElementById("app")!);
}

void main();
