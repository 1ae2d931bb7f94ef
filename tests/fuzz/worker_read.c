/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* worker_read.c - fuzz target: text into workers, and C into findings.
 *
 * A byte 1 divides the input: before it the .worker file, behind it the C source. Whatever is read,
 * every finding has a sentence and a place inside of its line, a worker without errors has a name
 * and states that stop, and it can be drawn with the ways of its source. */
#include <stdlib.h>
#include <string.h>

#include <detent/tool/draw.h>

#include "worker/arch.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define SEPARATOR 1

static void require(bool fact)
{
    if (!fact)
        abort();
}

static void check_place(const struct det_place *place, const char *text)
{
    require(text != NULL && text[0] != '\0');
    require(place->file != NULL && place->line > 0 && place->column > 0);
    if (place->source != NULL)
        require(place->column <= strlen(place->source) + 1);
}

static void check_facts(const struct det_worker_spec_summary *facts)
{
    require(facts->name != NULL && facts->prefix != NULL && facts->state_count > 0);
    require(facts->states[0].phase == DET_PHASE_STOPPED);
    for (uint16_t i = 0; i < facts->state_count; i++) {
        const struct det_worker_spec_state *state = &facts->states[i];
        bool stops = state->phase == DET_PHASE_STOPPED || state->phase == DET_PHASE_STOPPING;

        require(stops == (state->on_stop == DET_WORKER_NO_STOP));
        require(stops || state->on_stop < facts->state_count);
    }
}

static void check_source(
    struct det_worker_spec *spec, const struct det_arch_text *text,
    const struct det_arch_text *source)
{
    struct det_draw_options options = { .drawing = DET_DRAW_DOT };
    const struct det_arch_report *report;
    const struct det_machine *machine;
    struct det_arch *arch;

    require(det_arch_check(spec, text, source, 1, NULL, &arch) == 0);
    report = det_arch_report(arch);
    for (size_t i = 0; i < report->count; i++)
        check_place(&report->findings[i].place, report->findings[i].text);
    require(
        det_worker_spec_machine(spec, report->transitions, report->transition_count, &machine) ==
        0);
    require(det_draw(machine, &options, NULL, 0, NULL) > 0);
    det_arch_close(arch);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *bytes = size > 0 ? (const char *)data : "";
    const char *behind = memchr(bytes, SEPARATOR, size);
    size_t length = behind != NULL ? (size_t)(behind - bytes) : size;
    struct det_arch_text text = { "link.worker", bytes, length };
    struct det_arch_text source = { "link.c", bytes + size, 0 };
    const struct det_diagnostics *found;
    struct det_worker_spec *spec;

    if (behind != NULL)
        source = (struct det_arch_text){ "link.c", behind + 1, size - length - 1 };
    require(det_worker_spec_read(text.path, bytes, length, NULL, &spec) == 0);
    found = det_worker_spec_diagnostics(spec);
    for (size_t i = 0; i < found->count; i++)
        check_place(&found->items[i].place, found->items[i].text);
    require(det_worker_spec_is_valid(spec) == (found->error_count == 0));
    if (det_worker_spec_is_valid(spec)) {
        check_facts(det_worker_spec_summary(spec));
        check_source(spec, &text, &source);
    }
    det_worker_spec_close(spec);
    return 0;
}
