/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* project_flow.c - a flow from a file to a file: what `detent new --from flow` writes. */
#include "codegen/project_files.h"

static const char flow_text[] =
    "/* @n@.flow - rows of a file, as they pass through the stages of @n@. One fact a row: "
    "'detent help rows'. */\n"
    "#define FLOW_NAME @n@\n"
    "\n"
    "/* The columns of orders.csv. Names are on disk and must never change. */\n"
    "RECORD(order_row)\n"
    "    FIELD(id,       str(32))\n"
    "    FIELD(customer, str(64))\n"
    "    FIELD(cents,    u64)\n"
    "END\n"
    "\n"
    "/* Stages with a connector: 'detent check' explains wrong settings. */\n"
    "SOURCE(read_orders, order_row, USE(csv, \"{path: orders.csv}\"))\n"
    "TRANSFORM(large, order_row, order_row, USE(filter, \"{where: cents > 1000}\"))\n"
    "SINK(write_orders, order_row, USE(jsonl, \"{path: orders.jsonl, existing: replace}\"))\n"
    "\n"
    "EDGE(read_orders, large)\n"
    "EDGE(large,       write_orders)\n";

static const char project_text[] = "# What 'detent up' serves: @n@.flow.\n"
                                   "version: 1\n"
                                   "flows:\n"
                                   "  @n@:\n"
                                   "    durability: disk\n";

static const char orders_text[] = "id,customer,cents\n"
                                  "o-1,ada,1999\n"
                                  "o-2,bob,500\n"
                                  "o-3,ada,12050\n";

static const char test_text[] =
    "# Rows in, rows out, in virtual time: 'detent test' runs these cases. No file is read or "
    "written.\n"
    "flow: @n@.flow\n"
    "cases:\n"
    "  - name: small orders are dropped\n"
    "    steps:\n"
    "      - rows:\n"
    "          read_orders:\n"
    "            - {id: o-1, customer: ada, cents: 1001}\n"
    "            - {id: o-2, customer: bob, cents: 1000}\n"
    "        expect: {rows: {write_orders: [{id: o-1}]}}\n"
    "  - name: a power failure loses nothing\n"
    "    steps:\n"
    "      - rows: {read_orders: [{id: o-3, customer: ada, cents: 12050}]}\n"
    "      - crash: true\n"
    "      - end: read_orders\n"
    "        expect: {rows: {write_orders: [{id: o-3}]}, end: completed}\n";

static const char readme_text[] =
    "# @n@\n"
    "\n"
    "- `@n@.flow`: the flow, one fact a row (`detent help rows`)\n"
    "- `@n@.flow.test.yaml`: its tests, rows in and rows out\n"
    "- `detent.yaml`: what `detent up` serves\n"
    "- `orders.csv`: input; `orders.jsonl` gets the orders of more than 1000 cents\n"
    "\n"
    "```\n"
    "detent flow run @n@.flow               # runs it to its end; an interrupted run is resumed\n"
    "detent flow tap large --file @n@.flow  # the rows that a stage has emitted or rejected\n"
    "detent check .       @_@               # errors and warnings\n"
    "detent test          @_@               # its cases, in virtual time\n"
    "detent diagram @n@.flow                # a Mermaid flowchart; --format svg -o @n@.svg\n"
    "detent fmt -w @n@.flow                 # its layout\n"
    "```\n";

const struct cli_new_file cli_new_flow[] = {
    { "@n@.flow", flow_text, CLI_NEW_ALWAYS },
    { "@n@.flow.test.yaml", test_text, CLI_NEW_ALWAYS },
    { "detent.yaml", project_text, CLI_NEW_ALWAYS },
    { "orders.csv", orders_text, CLI_NEW_ALWAYS },
    { "README.md", readme_text, CLI_NEW_ALWAYS },
    { NULL, NULL, CLI_NEW_ALWAYS },
};
