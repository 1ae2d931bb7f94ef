/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* config_machine.c - a machine of detent.yaml. */
#include "cli/config_parts.h"

int config_take_machine(
    struct cli_reader *reader, const struct cli_yaml *node, struct config_machine *machine)
{
    static const struct config_key keys[] = {
        { "spec", config_take_text, offsetof(struct config_machine, spec), 0, 0, NULL, 0, NULL },
    };
    const struct cli_yaml *nodes[sizeof keys / sizeof *keys];
    int r = config_check_name(reader, node);

    machine->name = node->key;
    machine->node = node;
    r = reader_both(
        r, config_take_mapping(reader, node, CONFIG_TABLE("a machine", keys), machine, nodes));
    machine->spec_node = nodes[0];
    if (r == 0 && !machine->spec)
        machine->spec = det_arena_format(reader->arena, "%s.fsm", node->key);
    return r == 0 && !machine->spec ? reader_no_memory(reader, node) : r;
}
