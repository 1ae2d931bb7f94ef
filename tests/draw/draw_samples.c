/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* draw_samples.c - writes every drawing of a set of machines into a folder, for check.mjs.
 *
 *   draw_samples <folder>
 *
 * The machines: the order; one whose names are the words that the parsers reserve; one whose
 * reasons, details and instance are as nasty as text gets; one of 60 states; and random ones by
 * seed. Beside the drawings of each is <machine>.json with what must be found in them:
 *
 *   { "states": [names], "edges": number, "reasons": [texts], "details": [texts], "run": text }
 *
 * Flows are among them, too: their stages are states, their records reasons. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <detent/tool/flow_draw.h>

#include "draw/texts.h"
#include "machine/draw_test_order.h"

#define STATES_MAX   128
#define EVENTS_MAX   128
#define EDGES_MAX    320
#define CHOICES_MAX  16
#define GROUPS_MAX   8
#define STEPS_MAX    128
#define NAME_SIZE    24
#define RANDOM_COUNT 12

/* A machine in the making, and a run of it. */
struct sample {
    struct det_machine machine;
    struct det_draw_trace trace;
    struct det_state_def states[STATES_MAX];
    struct det_event_def events[EVENTS_MAX];
    struct det_transition table[STATES_MAX * EVENTS_MAX];
    struct det_transition_more more[EDGES_MAX];
    struct det_choice choices[CHOICES_MAX];
    struct det_group_def groups[GROUPS_MAX];
    uint16_t members[GROUPS_MAX][STATES_MAX];
    struct det_draw_step steps[STEPS_MAX];
    char names[STATES_MAX + EVENTS_MAX + GROUPS_MAX][NAME_SIZE];
    size_t name_count, more_count;
};

#define COUNT(list) (sizeof(list) / sizeof(list)[0])

static uint64_t next_random(uint64_t *seed)
{
    uint64_t z = *seed += UINT64_C(0x9E3779B97F4A7C15);

    z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
    return z ^ z >> 31;
}

static unsigned below(uint64_t *seed, size_t limit)
{
    return (unsigned)(next_random(seed) % limit);
}

static void begin(struct sample *sample, const char *name, size_t states, size_t events)
{
    memset(sample, 0, sizeof *sample);
    sample->machine = (struct det_machine){
        .name = name,
        .version = 1,
        .state_count = (uint16_t)states,
        .event_count = (uint16_t)events,
        .table = sample->table,
        .states = sample->states,
        .events = sample->events,
        .groups = sample->groups,
        .choices = sample->choices,
    };
    sample->states[0].flags = DET_STATE_INITIAL;
    sample->trace = (struct det_draw_trace){ .instance = name, .steps = sample->steps };
}

static const char *keep_name(struct sample *sample, const char *prefix, unsigned number)
{
    char *name = sample->names[sample->name_count++];

    (void)snprintf(name, NAME_SIZE, "%s%02u", prefix, number);
    return name;
}

static struct det_transition *cell(struct sample *sample, unsigned state, unsigned event)
{
    return &sample->table[state * sample->machine.event_count + event];
}

static void add_goto(struct sample *sample, unsigned from, unsigned event, unsigned to)
{
    *cell(sample, from, event) =
        (struct det_transition){ .outcome = DET_OUTCOME_GOTO, .to = (uint16_t)to };
}

static void add_stop(struct sample *sample, unsigned from, unsigned event, const char *reason)
{
    struct det_transition_more *more = &sample->more[sample->more_count++];

    more->reason = reason;
    *cell(sample, from, event) =
        (struct det_transition){ .outcome = DET_OUTCOME_STOP, .to = (uint16_t)from, .more = more };
}

/* An alternative: to another state, or to the end with a reason, under a guard or without. */
static void add_choice(
    struct sample *sample, unsigned from, unsigned event, unsigned to,
    const struct det_transition_more *more)
{
    bool is_stop = more && more->reason;

    sample->choices[sample->machine.choice_count++] = (struct det_choice){
        .state = (uint16_t)from,
        .event = (uint16_t)event,
        .transition = { .outcome = is_stop ? DET_OUTCOME_STOP : DET_OUTCOME_GOTO,
                        .to = (uint16_t)(is_stop ? from : to),
                        .more = more },
    };
}

static void add_step(struct sample *sample, unsigned from, unsigned event, const char *detail)
{
    const struct det_transition *transition = cell(sample, from, event);
    size_t index = sample->trace.step_count++;

    sample->steps[index] = (struct det_draw_step){
        .sequence = index + 1,
        .from = (uint16_t)from,
        .to = transition->to,
        .event = (uint16_t)event,
        .outcome = transition->outcome,
        .is_timeout = index % 5 == 4,
        .at = index % 2 ? ORDER_TIME + (det_time)index * DET_SECOND : 0,
        .detail = detail,
    };
    sample->trace.current = transition->to;
}

static void add_group(struct sample *sample, const char *name, unsigned first, unsigned count)
{
    unsigned index = sample->machine.group_count++;

    for (unsigned i = 0; i < count; i++)
        sample->members[index][i] = (uint16_t)(first + i);
    sample->groups[index] = (struct det_group_def){
        .name = name,
        .members = sample->members[index],
        .member_count = (uint16_t)count,
    };
}

/* Every word is a state, an event and a hook, in a ring, in declaration order and back. */
static void make_words(struct sample *sample)
{
    static struct det_hook_def hooks[COUNT(words)];
    unsigned count = COUNT(words);

    begin(sample, "digraph", count, count);
    for (unsigned i = 0; i < count; i++) {
        hooks[i].name = words[i];
        sample->states[i].name = words[i];
        sample->states[i].entry = &hooks[i];
        sample->states[i].timeout =
            (struct det_timeout){ .after = DET_SECOND, .event = (uint16_t)i };
        sample->events[i].name = words[i];
        add_goto(sample, i, i, (i + 1) % count);
    }
    for (unsigned i = 0; i < count; i++)
        add_step(sample, i, i, NULL);
    add_group(sample, "end", 0, 40);
    add_group(sample, "subgraph", 10, 20);
    add_group(sample, "graph", 12, 4);
    add_group(sample, "state_1", 50, 9);
    sample->states[count - 1].flags = DET_STATE_FINAL;
}

static void make_nasty(struct sample *sample)
{
    begin(sample, "nasty", 2, COUNT(nasty));
    sample->states[0].name = "a";
    sample->states[1].name = "b";
    for (unsigned i = 0; i < COUNT(nasty); i++) {
        sample->events[i].name = keep_name(sample, "e", i);
        add_stop(sample, 0, i, nasty[i]);
        add_goto(sample, 1, i, 0);
        add_step(sample, 1, i, nasty[i]);
    }
    sample->trace.instance = "wrap: a;b#c<d>\"e\"\n%%f & \xF0\x9F\x8E\x89";
}

static void make_large(struct sample *sample)
{
    begin(sample, "large", 60, 4);
    for (unsigned i = 0; i < 60; i++)
        sample->states[i].name = keep_name(sample, "step_", i);
    for (unsigned i = 0; i < 4; i++)
        sample->events[i].name = keep_name(sample, "event_", i);
    for (unsigned i = 0; i < 60; i++) {
        add_goto(sample, i, 0, (i + 1) % 60);
        add_goto(sample, i, 1, i / 2);
        if (i % 7 == 0)
            add_goto(sample, i, 2, (i * 13) % 60);
    }
    for (unsigned i = 0; i < 30; i++)
        add_step(sample, i, 0, "n=1");
    for (unsigned i = 0; i < 6; i++)
        add_group(sample, keep_name(sample, "decade_", i), i * 10, i * 2 + 1);
}

static void random_edge(struct sample *sample, uint64_t *seed)
{
    unsigned from = below(seed, sample->machine.state_count);
    unsigned event = below(seed, sample->machine.event_count);

    switch (below(seed, 5)) {
    case 0:
        add_stop(sample, from, event, below(seed, 2) ? nasty[below(seed, COUNT(nasty))] : NULL);
        break;
    case 1:
        *cell(sample, from, event) =
            (struct det_transition){ DET_OUTCOME_STAY, (uint16_t)from, 0, NULL };
        break;
    default:
        add_goto(sample, from, event, below(seed, sample->machine.state_count));
        break;
    }
}

/* Alternatives of cells that say something; the guards have words of the parsers as names. */
static void random_choices(struct sample *sample, uint64_t *seed)
{
    static const struct det_guard_def guards[] = { { .name = "end" }, { .name = "is_note" } };

    for (unsigned i = 0; i < CHOICES_MAX; i++) {
        unsigned from = below(seed, sample->machine.state_count);
        unsigned event = below(seed, sample->machine.event_count);
        struct det_transition_more *more = &sample->more[sample->more_count];

        if (cell(sample, from, event)->outcome == DET_OUTCOME_UNHANDLED)
            continue;
        more->guard = below(seed, 2) ? &guards[below(seed, COUNT(guards))] : NULL;
        more->reason = below(seed, 3) ? NULL : nasty[below(seed, COUNT(nasty))];
        sample->more_count += more->guard || more->reason;
        add_choice(
            sample, from, event, below(seed, sample->machine.state_count),
            more->guard || more->reason ? more : NULL);
    }
}

static void random_run(struct sample *sample, uint64_t *seed)
{
    for (unsigned i = 0; i < 200 && sample->trace.step_count < 40; i++) {
        unsigned event = below(seed, sample->machine.event_count);

        if (cell(sample, sample->trace.current, event)->outcome != DET_OUTCOME_UNHANDLED)
            add_step(sample, sample->trace.current, event, nasty[below(seed, COUNT(nasty))]);
    }
}

static void make_random(struct sample *sample, uint64_t seed)
{
    unsigned states = 1 + below(&seed, 14), events = 1 + below(&seed, 8);
    unsigned word = below(&seed, COUNT(words) - states - events);
    unsigned group_count = below(&seed, 5);

    begin(sample, "random", states, events);
    for (unsigned i = 0; i < states; i++) {
        sample->states[i].name = words[word + i];
        sample->states[i].flags |= below(&seed, 6) == 0 ? DET_STATE_FINAL : 0;
        if (below(&seed, 4) == 0)
            sample->states[i].timeout.after = (det_time)(next_random(&seed) >> 8);
    }
    for (unsigned i = 0; i < events; i++)
        sample->events[i].name = words[word + states + i];
    for (unsigned i = 0; i < states * events / 2; i++)
        random_edge(sample, &seed);
    random_choices(sample, &seed);
    random_run(sample, &seed);
    for (unsigned i = 0; i < group_count; i++) {
        unsigned first = below(&seed, states);

        add_group(
            sample, words[below(&seed, COUNT(words))], first, 1 + below(&seed, states - first));
    }
}

static void fail(const char *what)
{
    (void)fprintf(stderr, "draw_samples: %s\n", what);
    exit(1);
}

static FILE *open_file(const char *folder, const char *name, const char *ending)
{
    char path[4096];
    FILE *file;

    (void)snprintf(path, sizeof path, "%s/%s%s", folder, name, ending);
    file = fopen(path, "w");
    if (!file)
        fail(path);
    return file;
}

static void close_file(FILE *file)
{
    if (ferror(file) || fclose(file) != 0)
        fail("cannot write");
}

static void write_json_text(FILE *file, const char *text)
{
    (void)fputc('"', file);
    for (; *text; text++) {
        if (*text == '"' || *text == '\\')
            (void)fprintf(file, "\\%c", *text);
        else if ((unsigned char)*text < ' ')
            (void)fprintf(file, "\\u%04x", (unsigned)*text);
        else
            (void)fputc(*text, file);
    }
    (void)fputc('"', file);
}

static void write_item(FILE *file, size_t *count, const char *text)
{
    if (!text)
        return;
    (void)fputs((*count)++ ? ", " : "", file);
    write_json_text(file, text);
}

static void write_reasons(FILE *file, const struct det_machine *machine)
{
    size_t cells = (size_t)machine->state_count * machine->event_count, count = 0, edges = 0;

    (void)fputs("],\n \"reasons\": [", file);
    for (size_t i = 0; i < cells; i++) {
        const struct det_transition *transition = &machine->table[i];

        edges += transition->outcome != DET_OUTCOME_UNHANDLED;
        write_item(file, &count, transition->more ? transition->more->reason : NULL);
    }
    for (size_t i = 0; i < machine->choice_count; i++) {
        const struct det_transition_more *more = machine->choices[i].transition.more;

        write_item(file, &count, more ? more->reason : NULL);
    }
    (void)fprintf(file, "],\n \"edges\": %zu", edges + machine->choice_count);
}

/* Details that the drawings cut are not looked for. */
static void write_expected(
    const char *folder, const char *name, const struct det_machine *machine,
    const struct det_draw_trace *trace)
{
    FILE *file = open_file(folder, name, ".json");
    size_t count = 0;

    (void)fputs("{\"states\": [", file);
    for (size_t i = 0; i < machine->state_count; i++)
        write_item(file, &count, machine->states[i].name);
    write_reasons(file, machine);
    (void)fputs(",\n \"details\": [", file);
    count = 0;
    for (size_t i = 0; i < trace->step_count; i++) {
        if (trace->steps[i].detail && strlen(trace->steps[i].detail) < 32)
            write_item(file, &count, trace->steps[i].detail);
    }
    (void)fputs("],\n \"run\": ", file);
    write_json_text(file, trace->instance);
    (void)fputs("}\n", file);
    close_file(file);
}

static void write_drawing(
    const char *folder, const char *name, const char *ending, const struct det_machine *machine,
    const struct det_draw_options *options)
{
    struct det_error error;
    FILE *file = open_file(folder, name, ending);
    int64_t length = det_draw(machine, options, NULL, 0, &error);
    char *text;

    if (length < 0)
        fail(error.text);
    text = malloc((size_t)length + 1);
    if (!text || det_draw(machine, options, text, (size_t)length + 1, &error) != length)
        fail("the drawing changed");
    (void)fwrite(text, 1, (size_t)length, file);
    free(text);
    close_file(file);
}

static void write_all(
    const char *folder, const char *name, const struct det_machine *machine,
    const struct det_draw_trace *trace)
{
    static const char *const endings[] = {
        [DET_DRAW_MERMAID_STATE] = ".state.mmd",       [DET_DRAW_MERMAID_FLOWCHART] = ".flow.mmd",
        [DET_DRAW_MERMAID_SEQUENCE] = ".sequence.mmd", [DET_DRAW_DOT] = ".graph.dot",
        [DET_DRAW_DOT_TIMELINE] = ".timeline.dot",
    };
    char variant[32];

    write_expected(folder, name, machine, trace);
    for (unsigned i = 0; i < COUNT(endings); i++) {
        enum det_drawing drawing = (enum det_drawing)i;
        struct det_draw_options options = { .drawing = drawing, .trace = trace };

        (void)snprintf(variant, sizeof variant, ".run%s", endings[i]);
        write_drawing(folder, name, variant, machine, &options);
        if (drawing == DET_DRAW_MERMAID_SEQUENCE || drawing == DET_DRAW_DOT_TIMELINE)
            continue;
        write_drawing(
            folder, name, endings[i], machine, &(struct det_draw_options){ .drawing = drawing });
        options = (struct det_draw_options){
            .drawing = drawing,
            .hide_timeouts = true,
            .top_down = true,
        };
        (void)snprintf(variant, sizeof variant, ".down%s", endings[i]);
        write_drawing(folder, name, variant, machine, &options);
    }
}

/* A flow of random stages and edges; its names are words of the parsers. */
struct flow_sample {
    struct det_flow flow;
    struct det_stage stages[COUNT(words)];
    struct det_edge edges[EDGES_MAX];
    struct det_record records[COUNT(words)];
};

static void make_flow(struct flow_sample *sample, uint64_t seed)
{
    memset(sample, 0, sizeof *sample);
    sample->flow = (struct det_flow){ "digraph", sample->stages, sample->edges, COUNT(words), 0 };
    for (unsigned i = 0; i < COUNT(words); i++) {
        sample->records[i].name = nasty[i % COUNT(nasty)];
        sample->stages[i] = (struct det_stage){
            .name = words[i],
            .kind = (enum det_stage_kind)(i % DET_STAGE_KINDS),
            .out = { .record = &sample->records[i] },
            .use = i % 3 == 0 ? words[COUNT(words) - 1 - i] : NULL,
        };
    }
    while (sample->flow.edge_count < EDGES_MAX / 2)
        sample->edges[sample->flow.edge_count++] = (struct det_edge){
            .from = (uint16_t)below(&seed, COUNT(words)),
            .to = (uint16_t)below(&seed, COUNT(words)),
            .flags = (uint16_t)below(&seed, 3),
        };
}

static void write_flow_expected(const char *folder, const struct det_flow *flow)
{
    FILE *file = open_file(folder, "flows", ".json");
    char label[2 * NAME_SIZE + 2];
    size_t count = 0;

    (void)fputs("{\"states\": [", file);
    for (unsigned i = 0; i < flow->stage_count; i++) {
        const struct det_stage *stage = &flow->stages[i];

        (void)snprintf(
            label, sizeof label, "%s%s%s", stage->name, stage->use ? "\n" : "",
            stage->use ? stage->use : "");
        write_item(file, &count, label);
    }
    (void)fputs("],\n \"reasons\": [", file);
    count = 0;
    for (unsigned i = 0; i < flow->edge_count; i++)
        write_item(file, &count, flow->stages[flow->edges[i].from].out.record->name);
    (void)fprintf(
        file, "],\n \"edges\": %u, \"starts\": 0, \"details\": [], \"run\": \"\"}\n",
        (unsigned)flow->edge_count);
    close_file(file);
}

static void write_flow_drawing(
    const char *folder, const char *ending, const struct det_flow *flow,
    const struct det_draw_options *options)
{
    struct det_error error;
    FILE *file = open_file(folder, "flows", ending);
    int64_t length = det_flow_draw(flow, options, NULL, 0, &error);
    char *text;

    if (length < 0)
        fail(error.text);
    text = malloc((size_t)length + 1);
    if (!text || det_flow_draw(flow, options, text, (size_t)length + 1, &error) != length)
        fail("the drawing changed");
    (void)fwrite(text, 1, (size_t)length, file);
    free(text);
    close_file(file);
}

static void write_flows(const char *folder)
{
    static struct flow_sample sample;
    struct det_draw_options options = { .drawing = DET_DRAW_MERMAID_FLOWCHART };

    make_flow(&sample, 1);
    write_flow_expected(folder, &sample.flow);
    write_flow_drawing(folder, ".flow.mmd", &sample.flow, &options);
    options.top_down = true;
    write_flow_drawing(folder, ".down.flow.mmd", &sample.flow, &options);
    options.drawing = DET_DRAW_DOT;
    write_flow_drawing(folder, ".graph.dot", &sample.flow, &options);
}

int main(int argc, char **argv)
{
    static struct sample sample;
    char name[16];

    if (argc != 2)
        fail("usage: draw_samples <folder>");
    write_all(argv[1], "order", &order_machine, &order_trace);
    make_words(&sample);
    write_all(argv[1], "words", &sample.machine, &sample.trace);
    make_nasty(&sample);
    write_all(argv[1], "nasty", &sample.machine, &sample.trace);
    make_large(&sample);
    write_all(argv[1], "large", &sample.machine, &sample.trace);
    write_flows(argv[1]);
    for (unsigned i = 0; i < RANDOM_COUNT; i++) {
        make_random(&sample, i);
        (void)snprintf(name, sizeof name, "random%02u", i);
        write_all(argv[1], name, &sample.machine, &sample.trace);
    }
    return 0;
}
