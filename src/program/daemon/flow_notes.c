/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* flow_notes.c - messages about the life of flows: their facts arrive on the loop of the flow, and
 * are printed on the loop of the daemon. */
#include "daemon/flows_internal.h"

#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"

struct fact_note {
    struct det_post post;
    struct up *up;
    bool is_failure;
    char name[DET_TASK_NAME_MAX + 1];
    char text[DET_ERROR_TEXT_MAX + 160];
};

static void print_fact(void *argument)
{
    struct fact_note *note = argument;

    if (note->is_failure)
        up_note_failure(note->up, note->name, "%s", note->text);
    else
        up_note(note->up, note->name, "%s", note->text);
    DET_DELETE(up_allocator(note->up), note);
}

static void write_counts(const struct det_flow_fact *fact, char *target, size_t size)
{
    snprintf(
        target, size, "%llu row%s in, %llu out, %llu rejected", (unsigned long long)fact->rows_in,
        det_plural(fact->rows_in), (unsigned long long)fact->rows_out,
        (unsigned long long)fact->errors);
}

/* Writes the sentence of a fact; "": it is not printed. */
static void write_fact(const struct det_flow_fact *fact, char *target, size_t size)
{
    char counts[120];

    write_counts(fact, counts, sizeof counts);
    switch (fact->kind) {
    case DET_FLOW_FACT_OPENED:
        snprintf(target, size, "run %s", fact->reason);
        break;
    case DET_FLOW_FACT_RUNNING:
        snprintf(target, size, "running");
        break;
    case DET_FLOW_FACT_COMPLETED:
        snprintf(target, size, "completed: %s", counts);
        break;
    case DET_FLOW_FACT_CANCELLED:
        snprintf(target, size, "stopped%s%s: %s", *fact->reason ? ": " : "", fact->reason, counts);
        break;
    case DET_FLOW_FACT_FAILED:
    case DET_FLOW_FACT_ABORTED:
        snprintf(target, size, "failed: %s; %s", fact->reason, counts);
        break;
    case DET_FLOW_FACT_STAGE_FAILED:
        snprintf(target, size, "stage %s has failed: %s", fact->stage, fact->reason);
        break;
    case DET_FLOW_FACT_READY:
    case DET_FLOW_FACT_DRAINING:
    case DET_FLOW_FACT_STOP_REQUESTED:
    case DET_FLOW_FACT_STAGE_RUNNING:
    case DET_FLOW_FACT_STAGE_DRAINING:
    case DET_FLOW_FACT_STAGE_COMPLETED:
    case DET_FLOW_FACT_STAGE_CANCELLED:
        *target = '\0';
        break;
    }
}

void up_flow_fact(void *user, const struct det_flow_fact *fact)
{
    struct up_flow *flow = user;
    struct up *up = flow->flows->up;
    struct fact_note *note = DET_NEW(up_allocator(up), struct fact_note);

    /* An order that came before has had no effect. */
    if (fact->kind == DET_FLOW_FACT_READY && flow->opened && atomic_load(&flow->is_run_ordered))
        (void)det_pipeline_run(flow->opened);
    /* Facts are in the journal; only the message is lost. */
    if (!note)
        return;
    note->up = up;
    note->is_failure = fact->kind == DET_FLOW_FACT_FAILED || fact->kind == DET_FLOW_FACT_ABORTED ||
                       fact->kind == DET_FLOW_FACT_STAGE_FAILED;
    (void)det_text_copy(note->name, sizeof note->name, flow->name);
    write_fact(fact, note->text, sizeof note->text);
    if (!*note->text) {
        DET_DELETE(up_allocator(up), note);
        return;
    }
    note->post = (struct det_post){ .run = print_fact, .argument = note };
    det_loop_post(up_loop(up), &note->post);
}

void up_flow_note_refusal(struct up_flow *flow)
{
    up_note_failure(flow->flows->up, flow->name, "cannot be opened: %s", flow->error.text);
}

void up_flow_note_retry(struct up_flow *flow, det_time delay)
{
    char span[UP_SPAN_TEXT];

    up_note(
        flow->flows->up, flow->name, "opened again in %s (failure %u)", up_span(delay, span),
        flow->failures);
}
