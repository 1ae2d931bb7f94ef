// SPDX-License-Identifier: MIT
// Copyright the detent authors

// The detent.yaml that an empty view begins with. tests/console runs 'detent up' with each of them.
export const SNIPPETS = {
    machines: `version: 1
store: sqlite:detent.db
machines:
  job:
    spec: job/job.fsm
    effects:
      work: {command: [sleep, 1], exits: {0: finished, 3: failed}}`,
    tasks: `version: 1
tasks:
  clock:
    run: sh -c 'while date; do sleep 5; done'
    restart: always`,
    slots: `version: 1
store: sqlite:detent.db
slots:
  batch: {width: 1, depth: 10}
  reports: {durable: yes}`,
    workers: `version: 1
workers:
  children:
    - name: website
      kind: http_check
      config: {url: "http://127.0.0.1:8080/"}`,
    flows: `version: 1
flows:
  rows: {file: rows/rows.flow}`,
};
