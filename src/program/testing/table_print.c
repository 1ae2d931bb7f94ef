/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* table_print.c - the events that each state accepts, as a table, or as a list if that is too
 * wide. */
#include "testing/table_print.h"

#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/buffer.h"
#include "base/memory.h"

/* Between two columns. */
#define GAP 2
/* Before the marks in a list by state. */
#define INDENT 4

struct mark {
    const char *text;
    const char *meaning;
    bool is_taken;
};

enum { MARK_GOTO, MARK_STAY, MARK_STOP, MARK_ERROR, MARK_IGNORE, MARK_DEFER, MARK_DEAD, MARKS };

static const struct mark marks[MARKS] = {
    [MARK_GOTO] = { "->", "goes to a state", true },
    [MARK_STAY] = { "stay", "changes no state", true },
    [MARK_STOP] = { "stop", "ends the instance", true },
    [MARK_ERROR] = { ".", "is an error", false },
    [MARK_IGNORE] = { "ignore", "is forgotten", false },
    [MARK_DEFER] = { "defer", "waits for another state", false },
    [MARK_DEAD] = { "dead", "is a dead letter", false },
};

struct matrix {
    struct cli *cli;
    const struct det_machine *machine;
    uint32_t *elses; /* how many alternatives, by cell */
    char text[24];   /* of the last cell */
};

static size_t cell_of(const struct matrix *matrix, unsigned state, unsigned event)
{
    det_assert(state < matrix->machine->state_count && event < matrix->machine->event_count);
    return (size_t)state * matrix->machine->event_count + event;
}

static const struct mark *mark_of(const struct matrix *matrix, unsigned state, unsigned event)
{
    static const unsigned policies[] = {
        [DET_UNHANDLED_ERROR] = MARK_ERROR,
        [DET_UNHANDLED_IGNORE] = MARK_IGNORE,
        [DET_UNHANDLED_DEFER] = MARK_DEFER,
        [DET_UNHANDLED_DEAD_LETTER] = MARK_DEAD,
    };
    int outcome = matrix->machine->table[cell_of(matrix, state, event)].outcome;

    if (outcome == DET_OUTCOME_GOTO)
        return &marks[MARK_GOTO];
    if (outcome == DET_OUTCOME_STAY)
        return &marks[MARK_STAY];
    if (outcome == DET_OUTCOME_STOP)
        return &marks[MARK_STOP];
    return &marks[policies[matrix->machine->events[event].unhandled]];
}

/* The mark, followed by "+2" for two alternatives. */
static const char *text_of(struct matrix *matrix, unsigned state, unsigned event)
{
    const char *mark = mark_of(matrix, state, event)->text;
    uint32_t elses = matrix->elses[cell_of(matrix, state, event)];

    if (elses == 0)
        return mark;
    snprintf(matrix->text, sizeof matrix->text, "%s+%u", mark, elses);
    return matrix->text;
}

static size_t column_width(struct matrix *matrix, unsigned event)
{
    size_t wide = strlen(matrix->machine->events[event].name);

    for (unsigned s = 0; s < matrix->machine->state_count; s++) {
        size_t size = strlen(text_of(matrix, s, event));

        wide = size > wide ? size : wide;
    }
    return wide;
}

static size_t name_width(const struct det_machine *machine)
{
    size_t wide = 0;

    for (unsigned s = 0; s < machine->state_count; s++) {
        size_t size = strlen(machine->states[s].name);

        wide = size > wide ? size : wide;
    }
    return wide;
}

/* The padding before a column is printed with that column, so that no line ends with blanks. */
static void print_cell(struct cli *cli, size_t room, enum cli_style style, const char *text)
{
    cli_print(cli, "%*s", (int)room, "");
    cli_print_in(cli, style, "%s", text);
}

static void print_head(struct matrix *matrix, const size_t *columns, size_t names)
{
    const struct det_machine *machine = matrix->machine;
    size_t room = names + GAP;

    for (unsigned e = 0; e < machine->event_count; e++) {
        print_cell(matrix->cli, room, CLI_BOLD, machine->events[e].name);
        room = columns[e] - strlen(machine->events[e].name) + GAP;
    }
    cli_print(matrix->cli, "\n");
}

static void print_row(struct matrix *matrix, const size_t *columns, size_t names, unsigned state)
{
    const char *name = matrix->machine->states[state].name;
    size_t room = names - strlen(name) + GAP;

    cli_print_in(matrix->cli, CLI_BOLD, "%s", name);
    for (unsigned e = 0; e < matrix->machine->event_count; e++) {
        const char *text = text_of(matrix, state, e);
        bool is_taken = mark_of(matrix, state, e)->is_taken;

        print_cell(matrix->cli, room, is_taken ? CLI_PLAIN : CLI_FAINT, text);
        det_assert(strlen(text) <= columns[e]);
        room = columns[e] - strlen(text) + GAP;
    }
    cli_print(matrix->cli, "\n");
}

static bool has_cell(struct matrix *matrix, unsigned state, unsigned event, const char *text)
{
    return strcmp(text_of(matrix, state, event), text) == 0;
}

/* The events of the state that have the mark of this one, which is the first. */
static void print_group(struct matrix *matrix, unsigned state, unsigned first, size_t room)
{
    struct det_buffer names;
    char text[sizeof matrix->text];

    snprintf(text, sizeof text, "%s", text_of(matrix, state, first));
    for (unsigned e = 0; e < first; e++) {
        if (has_cell(matrix, state, e, text))
            return;
    }
    det_buffer_init(&names, matrix->cli->allocator);
    for (unsigned e = first; e < matrix->machine->event_count; e++) {
        if (has_cell(matrix, state, e, text))
            det_buffer_format(&names, "%s ", matrix->machine->events[e].name);
    }
    if (det_buffer_status(&names) == 0) {
        cli_print(matrix->cli, "%*s%s", INDENT, "", text);
        cli_print_wrapped(
            matrix->cli, INDENT + strlen(text), INDENT + room + GAP, det_buffer_text(&names));
    } else {
        (void)cli_no_memory(matrix->cli);
    }
    det_buffer_deinit(&names);
}

static void print_list(struct matrix *matrix)
{
    const struct det_machine *machine = matrix->machine;
    size_t room = 0;

    for (size_t cell = 0; cell < (size_t)machine->state_count * machine->event_count; cell++) {
        unsigned event = (unsigned)(cell % machine->event_count);
        size_t size = strlen(text_of(matrix, (unsigned)(cell / machine->event_count), event));

        room = size > room ? size : room;
    }
    for (unsigned s = 0; s < machine->state_count; s++) {
        cli_print_in(matrix->cli, CLI_BOLD, "%s\n", machine->states[s].name);
        for (unsigned e = 0; e < machine->event_count; e++)
            print_group(matrix, s, e, room);
    }
}

static void print_table(struct matrix *matrix, const size_t *columns)
{
    size_t names = name_width(matrix->machine), wide = names;

    for (unsigned e = 0; e < matrix->machine->event_count; e++)
        wide += GAP + columns[e];
    if (matrix->cli->out_columns && wide > matrix->cli->out_columns) {
        print_list(matrix);
        return;
    }
    print_head(matrix, columns, names);
    for (unsigned s = 0; s < matrix->machine->state_count; s++)
        print_row(matrix, columns, names, s);
}

/* Prints the meaning of the used marks. */
static int print_legend(struct matrix *matrix)
{
    const struct det_machine *machine = matrix->machine;
    bool is_there[MARKS] = { false };
    struct det_buffer text;
    const char *comma = "";
    int r;

    for (unsigned s = 0; s < machine->state_count; s++) {
        for (unsigned e = 0; e < machine->event_count; e++)
            is_there[mark_of(matrix, s, e) - marks] = true;
    }
    det_buffer_init(&text, matrix->cli->allocator);
    for (size_t i = 0; i < MARKS; i++) {
        if (!is_there[i])
            continue;
        det_buffer_format(&text, "%s%s %s", comma, marks[i].text, marks[i].meaning);
        comma = ", ";
    }
    if (machine->choice_count > 0)
        det_buffer_append_text(&text, ", +1 counts ELSE rows");
    r = det_buffer_status(&text);
    if (r == 0 && text.size > 0) {
        cli_print(matrix->cli, "\n");
        cli_print_wrapped(matrix->cli, 0, 0, det_buffer_text(&text));
        cli_print(matrix->cli, "\n");
    }
    det_buffer_deinit(&text);
    return r;
}

static int print_all(struct matrix *matrix, size_t *columns)
{
    const struct det_machine *machine = matrix->machine;

    for (uint32_t i = 0; i < machine->choice_count; i++)
        matrix->elses[cell_of(matrix, machine->choices[i].state, machine->choices[i].event)]++;
    for (unsigned e = 0; e < machine->event_count; e++)
        columns[e] = column_width(matrix, e);
    print_table(matrix, columns);
    return print_legend(matrix);
}

int cli_matrix_print(struct cli *cli, const struct det_machine *machine)
{
    const struct det_allocator *allocator = cli->allocator;
    struct matrix matrix = { .cli = cli, .machine = machine };
    size_t cells = (size_t)machine->state_count * machine->event_count;
    size_t *columns = DET_NEW_ARRAY(allocator, machine->event_count, size_t);
    int r = DET_ERR_NO_MEMORY;

    matrix.elses = DET_NEW_ARRAY(allocator, cells, uint32_t);
    if (matrix.elses && columns)
        r = print_all(&matrix, columns);
    DET_DELETE_ARRAY(allocator, matrix.elses, cells);
    DET_DELETE_ARRAY(allocator, columns, machine->event_count);
    return r < 0 ? cli_no_memory(cli) : CLI_OK;
}
