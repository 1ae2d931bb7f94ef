/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* rig.c - runs plans on a recorded disk and checks it after power cuts. */
#include "crash/rig.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REPORTED_MAX 10
/* One in this many known states is checked nevertheless. */
#define DOUBT_EVERY 32

static void must(bool is_well, const char *what)
{
    if (is_well)
        return;
    fprintf(stderr, "crash: %s\n", what);
    abort();
}

void crash_rig_open(struct crash_rig *rig, const struct crash_plan_options *options)
{
    struct det_store_options store = { .connections = 1 };
    struct crash_memo *memo = rig->memo ? rig->memo : crash_memo_open();

    memset(rig, 0, sizeof *rig);
    rig->memo = memo;
    crash_bed_open(&rig->bed, options->seed);
    store.world = det_sim_world(rig->bed.sim);
    for (unsigned i = 0; i < CRASH_LEVELS; i++)
        crash_run_init(&rig->runs[i], crash_bed_url(i), &store);
    rig->plan = crash_plan_open(options);
    rig->found = calloc(1, sizeof *rig->found);
    must(rig->found, "no memory");
}

void crash_rig_close(struct crash_rig *rig)
{
    for (unsigned i = 0; i < CRASH_LEVELS; i++) {
        rig->bed.active = &rig->bed.disks[i];
        crash_run_deinit(&rig->runs[i]);
    }
    crash_plan_close(rig->plan);
    free(rig->found);
    crash_bed_close(&rig->bed);
}

static bool opens(const struct crash_step *step)
{
    return step->kind == CRASH_STEP_REOPEN || step->kind == CRASH_STEP_MIGRATE;
}

static void answer(struct crash_rig *rig, size_t step)
{
    const struct crash_disk *disk = &rig->bed.disks[0];

    rig->answered = step;
    if (opens(&rig->plan->steps[step - 1]))
        rig->forgiven = disk->failed_syncs;
    else if (rig->failed_before > rig->forgiven)
        rig->answered_late++;
    crash_disk_mark(&rig->bed.disks[0], 2 * step);
}

/* The definition that is served after a step. */
static unsigned version_at(const struct crash_rig *rig, size_t step)
{
    return step ? rig->plan->steps[step - 1].version : 1;
}

void crash_rig_free(struct crash_rig *rig)
{
    if (rig->memo)
        crash_memo_close(rig->memo);
    free(rig);
}

int crash_rig_run(struct crash_rig *rig, size_t from, size_t to)
{
    struct crash_disk *disk = &rig->bed.disks[0];
    struct crash_run *run = &rig->runs[0];
    int r;

    rig->bed.active = disk;
    rig->forgiven = disk->failed_syncs;
    r = crash_run_open(run, version_at(rig, from));
    for (size_t i = from + 1; i <= to && r == 0; i++) {
        rig->begun = i;
        rig->failed_before = disk->failed_syncs;
        crash_disk_mark(disk, 2 * i - 1);
        if (rig->answers_early)
            answer(rig, i);
        r = crash_run_step(run, &rig->plan->steps[i - 1]);
        if (r == 0)
            answer(rig, i);
    }
    return r;
}

static void report(const struct crash_rig *rig, const struct crash_cut *cut, const char *text)
{
    if (CRASH_FAULTS_SUM(rig->faults) <= REPORTED_MAX)
        printf(
            "place %zu, step %llu %s, state %016llx: %s\n", cut->place,
            (unsigned long long)(cut->mark + 1) / 2, cut->mark % 2 ? "begun" : "answered",
            (unsigned long long)cut->state, text);
}

static void blame(
    struct crash_rig *rig, const struct crash_cut *cut, uint64_t *count, const char *text)
{
    ++*count;
    report(rig, cut, text);
}

/* A store whose creation failed by a failed sync may be incomplete: it has no content, and opening
 * it reports that. */
static bool is_unborn(const struct crash_rig *rig, const struct crash_cut *cut)
{
    return cut->mark == 0 && rig->bed.disks[0].failed_syncs > 0;
}

/* Opens the store of a level, as a program does after a crash. */
static struct crash_verdict inspect(
    struct crash_rig *rig, unsigned level, const struct crash_cut *cut)
{
    struct crash_run *run = &rig->runs[level];
    struct crash_verdict verdict = { 0 };

    rig->bed.active = &rig->bed.disks[level];
    run->text[0] = 0;
    verdict.result = crash_run_recover(
        run, version_at(rig, (size_t)cut->mark / 2), version_at(rig, (size_t)(cut->mark + 1) / 2),
        rig->found);
    if (verdict.result == 0) {
        verdict.model = rig->found;
        if (crash_run_check(run, &verdict.findings) < 0)
            verdict.findings++;
    }
    snprintf(verdict.text, sizeof verdict.text, "%s", run->text);
    crash_run_close(run);
    return verdict;
}

static void validate(
    struct crash_rig *rig, const struct crash_cut *cut, const struct crash_verdict *verdict)
{
    const struct crash_model *answered = &rig->plan->models[cut->mark / 2];
    const struct crash_model *begun = &rig->plan->models[(cut->mark + 1) / 2];
    char text[512];

    if (verdict->result < 0 && is_unborn(rig, cut)) {
        rig->unborn++;
    } else if (verdict->result < 0) {
        blame(rig, cut, &rig->faults.unopened, verdict->text);
    } else {
        if (!crash_model_check(verdict->model, answered, begun, &rig->faults, text, sizeof text))
            report(rig, cut, text);
        if (verdict->findings)
            blame(rig, cut, &rig->faults.unchecked, verdict->text);
    }
}

/* Checks the store of a level, unless its verdict is known. */
static void look_once(struct crash_rig *rig, unsigned level, const struct crash_cut *cut)
{
    struct crash_disk *disk = &rig->bed.disks[level];
    uint64_t start = (uint64_t)version_at(rig, (size_t)cut->mark / 2) << 32 |
                     version_at(rig, (size_t)(cut->mark + 1) / 2);
    const struct crash_verdict *known = crash_memo_find(rig->memo, start, disk);
    struct crash_verdict verdict;

    if (known && rig->known++ % DOUBT_EVERY != 0) {
        validate(rig, cut, known);
        return;
    }
    if (!known)
        crash_memo_begin(rig->memo, start, disk);
    verdict = inspect(rig, level, cut);
    must(!known || crash_verdict_equals(known, &verdict), "the same reads led to another verdict");
    if (!known)
        crash_memo_end(rig->memo, &verdict);
    validate(rig, cut, &verdict);
}

int64_t crash_rig_stand(struct crash_rig *rig)
{
    struct crash_disk *disk = &rig->bed.disks[0];
    struct crash_run *run = &rig->runs[0];
    int64_t at = -1;

    rig->bed.active = disk;
    if (crash_run_recover(
            run, version_at(rig, rig->answered), version_at(rig, rig->begun), rig->found) == 0) {
        if (run->version == version_at(rig, rig->answered) &&
            !memcmp(rig->found, &rig->plan->models[rig->answered], sizeof *rig->found))
            at = (int64_t)rig->answered;
        else if (!memcmp(rig->found, &rig->plan->models[rig->begun], sizeof *rig->found))
            at = (int64_t)rig->begun;
    }
    crash_run_close(run);
    return at;
}

struct nested {
    struct crash_rig *rig;
    uint64_t mark; /* of the first cut */
};

static int look_nested(void *context, const struct crash_cut *cut, struct crash_disk *disk)
{
    struct nested *nested = context;
    struct crash_cut both = { cut->place, nested->mark, cut->state };

    (void)disk;
    nested->rig->nested_states++;
    look_once(nested->rig, 2, &both);
    return 0;
}

/* The disk is recorded while the store of the first cut is opened and checked; then the power is
 * cut at every place of that. */
static void look_and_cut(struct crash_rig *rig, const struct crash_cut *cut)
{
    struct crash_disk *disk = &rig->bed.disks[1];
    struct crash_cut_options options = { .chances = 2, .seed = cut->state, .singles_max = 8 };
    struct nested nested = { rig, cut->mark };
    struct crash_verdict verdict;

    options.first = crash_disk_record(disk);
    verdict = inspect(rig, 1, cut);
    validate(rig, cut, &verdict);
    (void)crash_cut_each(disk, &options, &rig->bed.disks[2], look_nested, &nested, NULL);
}

static int look(void *context, const struct crash_cut *cut, struct crash_disk *disk)
{
    struct crash_rig *rig = context;

    (void)disk;
    rig->states++;
    if (rig->nested_every && cut->state / 64 % rig->nested_every == 0)
        look_and_cut(rig, cut);
    else
        look_once(rig, 1, cut);
    return 0;
}

void crash_rig_cut(struct crash_rig *rig, const struct crash_cut_options *options)
{
    (void)crash_cut_each(&rig->bed.disks[0], options, &rig->bed.disks[1], look, rig, NULL);
}

void crash_report(const char *what, uint64_t count, const struct crash_faults *faults)
{
    printf(
        "%s: %llu, lost %llu, doubled %llu, timers lost %llu, effects lost %llu, halves %llu, "
        "unopened %llu, unchecked %llu\n",
        what, (unsigned long long)count, (unsigned long long)faults->lost,
        (unsigned long long)faults->doubled, (unsigned long long)faults->timers,
        (unsigned long long)faults->effects, (unsigned long long)faults->halves,
        (unsigned long long)faults->unopened, (unsigned long long)faults->unchecked);
    fflush(stdout);
}
