// SPDX-License-Identifier: MIT
// Copyright the detent authors

// The choice of a machine, kept in the address.
import type { JSX } from "preact";
import { amend, place } from "../router";
import { summaries } from "../store";

export function MachineFilter(): JSX.Element {
    const chosen = place.value.search.get("machine") ?? "";
    const names = (summaries.value ?? []).map((machine) => machine.name);
    if (chosen && !names.includes(chosen)) names.push(chosen);
    return (
        <select aria-label="Machine" value={chosen} onChange={(event) => amend({ machine: event.currentTarget.value })}>
            <option value="">every machine</option>
            {names.map((name) => (
                <option key={name} value={name}>
                    {name}
                </option>
            ))}
        </select>
    );
}
