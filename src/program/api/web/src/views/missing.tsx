// SPDX-License-Identifier: MIT
// Copyright the detent authors

// The view of a place that there is not.
import type { JSX } from "preact";
import { Empty, Head, Panel } from "../ui";

export function Missing(): JSX.Element {
    return (
        <>
            <Head title="Nothing here" />
            <Panel>
                <Empty title="Page not found.">
                    <a href="/">Go to the overview</a>, or press <kbd>/</kbd> to find something.
                </Empty>
            </Panel>
        </>
    );
}
