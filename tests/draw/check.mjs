// SPDX-License-Identifier: MIT
// Copyright the detent authors

// check.mjs - gives the drawings of draw_samples to mermaid's own parser and to dot.
//
//   node check.mjs <folder of samples>
//
// A drawing must be accepted, and what went into it must come out: every state as a node, every
// transition as an edge, every reason and detail in some label, letter by letter. First the check
// itself is tried on bad drawings, which it must refuse.
//
// Mermaid cleans its labels with DOMPurify, which is nothing without a browser. Only that is
// replaced, by a function that changes nothing; the parsers are the real ones and need no page.
import { spawnSync } from 'node:child_process';
import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import DOMPurify from 'dompurify';

if (!DOMPurify.isSupported)
    Object.assign(DOMPurify, { sanitize: (text) => text, addHook: () => {} });
const { default: mermaid } = await import('mermaid');

/** What mermaid shows for what it keeps: `#59;` is put aside as a pair of marks around 59. */
function shown(label) {
    return label
        .replace(/\uFB02\u00B0\u00B0(\d+)\u00B6\u00DF/g, (_, code) => String.fromCodePoint(code))
        .replace(/<br\/>/g, '\n');
}

function requireAll(texts, labels, what) {
    for (const text of texts)
        if (!labels.some((label) => label.includes(text)))
            throw new Error(`no label shows the ${what} ${JSON.stringify(text)}`);
}

function requireNodes(names, labels) {
    for (const name of names)
        if (!labels.includes(name)) throw new Error(`no node is labelled ${JSON.stringify(name)}`);
}

/** Marks for the start, the end and the final states are edges too, but without a label. */
function requireEdges(count, labels) {
    const found = labels.filter((label) => label !== '').length;
    if (found !== count) throw new Error(`${found} edges instead of ${count}`);
}

async function checkMermaid(text, expected) {
    await mermaid.parse(text);
    if (!expected) return;
    const { db, type } = await mermaid.mermaidAPI.getDiagramFromText(text);
    if (type === 'sequence') {
        const messages = db.getMessages().map(({ message }) => shown(String(message)));
        const actors = [...db.getActors().values()].map(({ description }) => shown(description));
        requireAll(expected.details, messages, 'detail');
        requireAll([expected.run], actors, 'instance');
        return;
    }
    const { nodes, edges } = db.getData();
    const labels = edges.map(({ label }) => shown(label ?? ''));
    requireNodes(expected.states, nodes.map(({ label }) => shown(String(label ?? ''))));
    requireEdges(expected.edges, labels);
    requireAll(expected.reasons, labels, 'reason');
}

/** The texts of an SVG, one per line of a label. */
function svgTexts(svg) {
    const names = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'" };
    return [...svg.matchAll(/<text [^>]*>([^<]*)<\/text>/g)].map(([, text]) =>
        text
            .replace(/&(?:#(\d+)|(\w+));/g, (_, code, name) =>
                code ? String.fromCodePoint(code) : names[name])
            .replace(/\u00A0/g, ' '));
}

function checkDot(text, expected, name) {
    const { status, stdout, stderr, error } = spawnSync('dot', ['-Tsvg'], {
        input: text,
        encoding: 'utf8',
        maxBuffer: 1 << 26,
    });
    if (error) throw error;
    if (status !== 0 || stderr !== '') throw new Error(`dot: ${status} ${stderr}`);
    if (!stdout.includes('<svg') || !stdout.trimEnd().endsWith('</svg>'))
        throw new Error('dot gave no SVG');
    if (!expected) return;
    const texts = svgTexts(stdout);
    const lines = (list) => list.flatMap((item) => item.split('\n'));
    if (name.includes('.timeline.')) {
        requireAll(lines(expected.details), texts, 'detail');
        return;
    }
    requireNodes(lines(expected.states), texts);
    requireAll(lines(expected.reasons), texts, 'reason');
    const edges = (stdout.match(/class="edge"/g) ?? []).length - (expected.starts ?? 1);
    if (edges !== expected.edges) throw new Error(`${edges} edges instead of ${expected.edges}`);
}

function check(name, text, expected) {
    return name.endsWith('.dot')
        ? checkDot(text, expected, name)
        : checkMermaid(text, expected);
}

/** Drawings that must be refused: each is a mistake that one could make. */
const bad = [
    ['no target.mmd', 'stateDiagram-v2\n    a -->\n'],
    ['two colons.mmd', 'stateDiagram-v2\n    a --> b: x :: y\n'],
    ['reserved state.mmd', 'stateDiagram-v2\n    class --> b: x\n'],
    ['reserved node.mmd', 'flowchart LR\n    end --> b\n'],
    ['quote.mmd', 'flowchart LR\n    a -->|"x " y"| b\n'],
    ['semicolon.mmd', 'sequenceDiagram\n    FSM->>FSM: pay; now\n'],
    ['unknown.mmd', 'statesDiagram\n    a --> b\n'],
    ['no target.dot', 'digraph { a -> }\n'],
    ['keyword.dot', 'digraph { node -> b; }\n'],
    ['quote.dot', 'digraph { a [label="x"y"]; }\n'],
    ['warning.dot', 'digraph { a [shape=nonsense]; }\n'],
    ['lost state.mmd', 'stateDiagram-v2\n    a --> b: x\n', { states: ['c'] }],
    ['lost edge.mmd', 'stateDiagram-v2\n    a --> b: x\n', { states: [], edges: 2 }],
    ['lost text.mmd', 'sequenceDiagram\n    FSM->>FSM: pay\n', { details: ['#'], run: 'x' }],
    ['lost reason.dot', 'digraph { s -> a; a -> b [label="x"]; }\n',
        { states: [], edges: 1, reasons: ['y'] }],
];

async function refuses(name, text, expected) {
    try {
        await check(name, text, expected);
    } catch {
        return true;
    }
    return false;
}

let failures = 0;
function fail(text) {
    console.error(text);
    failures++;
}

const folder = process.argv[2];
const files = readdirSync(folder).filter((file) => /\.(mmd|dot)$/.test(file)).sort();

for (const [name, text, expected] of bad)
    if (!(await refuses(name, text, expected))) fail(`${name}: a bad drawing was accepted`);
for (const file of files) {
    const expected = JSON.parse(readFileSync(join(folder, `${file.split('.')[0]}.json`), 'utf8'));
    try {
        await check(file, readFileSync(join(folder, file), 'utf8'), expected);
    } catch (error) {
        fail(`${file}: ${error.message}`);
    }
}
if (files.length === 0) fail(`${folder}: no drawings`);
console.log(`${files.length} drawings, ${bad.length} bad ones, ${failures} failures`);
process.exit(failures ? 1 : 0);
