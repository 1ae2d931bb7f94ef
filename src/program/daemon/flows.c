/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* flows.c - all flows of a run: their threads, the list, opening, reload and closing. */
#include "daemon/flows_internal.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/assert.h"
#include "base/memory.h"
#include "base/text.h"
#include "config/project_file.h"
#include "daemon/life.h"

/* The list. */

struct up_flow *up_flows_find(const struct up_flows *flows, const char *name)
{
    struct up_flow *flow = flows ? flows->first : NULL;

    while (flow && strcmp(flow->name, name) != 0)
        flow = flow->following;
    return flow;
}

static void append_flow(struct up_flows *flows, struct up_flow *flow)
{
    struct up_flow **end = &flows->first;
    struct det_world *world = up_world(flows->up);

    det_mutex_lock(world, flows->lock);
    while (*end)
        end = &(*end)->following;
    *end = flow;
    flows->count++;
    det_mutex_unlock(world, flows->lock);
}

static void remove_flow(struct up_flows *flows, struct up_flow **place)
{
    struct up_flow *flow = *place;
    struct det_world *world = up_world(flows->up);

    det_assert(flows->count > 0);
    det_mutex_lock(world, flows->lock);
    while (flow->holds > 0)
        (void)det_condition_wait(world, flows->released, flows->lock, DET_NEVER);
    *place = flow->following;
    flows->count--;
    det_mutex_unlock(world, flows->lock);
    up_flow_close(flow);
}

static size_t count_over(const struct up_flows *flows)
{
    size_t count = 0;

    for (const struct up_flow *flow = flows->first; flow; flow = flow->following)
        count += up_flow_is_over(flow);
    return count;
}

/* Frees flows that a reload has removed. Not from a callback of a flow. */
static void remove_over(struct up_flows *flows)
{
    struct up_flow **place = &flows->first;

    while (*place) {
        if (up_flow_is_over(*place))
            remove_flow(flows, place);
        else
            place = &(*place)->following;
    }
}

static void on_sweep(void *argument)
{
    struct up_flows *flows = argument;

    flows->is_sweeping = false;
    if (!flows->is_stopping)
        remove_over(flows);
}

void up_flows_sweep(struct up_flows *flows)
{
    if (flows->is_sweeping)
        return;
    flows->is_sweeping = true;
    flows->sweep = (struct det_post){ .run = on_sweep, .argument = flows };
    det_loop_post(up_loop(flows->up), &flows->sweep);
}

/* Opening. */

/* A run of named tasks has no flows. */
static bool are_wanted(const struct up *up)
{
    return up_config(up)->flow_count > 0 && up_options(up)->name_count == 0;
}

/* Flows keep their journals in a folder of the one that has the socket, which is private. */
static int make_folder(struct up *up, struct det_error *reterr)
{
    char path[DET_PATH_MAX];

    if (snprintf(path, sizeof path, "%s/" UP_FLOWS_FOLDER, up_folder(up)) >= (int)sizeof path)
        return det_error_set(reterr, DET_ERR_LIMIT, "the path of the folder is too long");
    if (mkdir(path, S_IRWXU) == 0 || errno == EEXIST)
        return 0;
    return det_error_set(
        reterr, DET_ERR_IO, "%s: cannot be created: %s", path,
        strerror(errno)); /* NOLINT(concurrency-mt-unsafe) */
}

static int open_loops(struct up_flows *flows)
{
    const struct det_allocator *allocator = up_allocator(flows->up);
    size_t wanted = up_config(flows->up)->flow_count;
    int r = 0;

    if (wanted > UP_FLOW_LOOPS)
        wanted = UP_FLOW_LOOPS;
    while (r == 0 && flows->loop_count < wanted) {
        struct det_loop **loop = &flows->loops[flows->loop_count];

        r = det_loop_open(up_world(flows->up), allocator, loop);
        if (r == 0) {
            flows->loop_count++;
            r = det_loop_start(*loop, "flows");
        }
    }
    return r;
}

static int open_base(struct up *up, struct det_error *reterr)
{
    struct up_flows *flows = DET_NEW(up_allocator(up), struct up_flows);
    int r;

    if (!flows)
        return det_error_set(reterr, DET_ERR_NO_MEMORY, "out of memory");
    flows->up = up;
    det_list_init(&flows->waits);
    up_set_flows(up, flows);
    r = det_mutex_open(up_world(up), &flows->lock);
    if (r == 0)
        r = det_condition_open(up_world(up), &flows->released);
    if (r == 0)
        r = open_loops(flows);
    if (r < 0)
        return det_error_set(reterr, r, "flows: %s", det_error_text(r));
    return make_folder(up, reterr);
}

/* Reports to the output of the run. */
static int load_definition(
    struct up *up, const struct config_flow *config, struct flow_definition **ret,
    struct det_error *reterr)
{
    if (flow_definition_open(up_cli(up), config, ret) == CLI_OK)
        return 0;
    return det_error_set(
        reterr, DET_ERR_MALFORMED, "flow %s cannot be loaded: its problems are above",
        config->name);
}

static int add_flow(struct up *up, const struct config_flow *config, struct det_error *reterr)
{
    struct flow_definition *definition = NULL;
    struct up_flow *flow = NULL;
    int r = load_definition(up, config, &definition, reterr);

    if (r == 0)
        r = up_flow_open(up_flows(up), config->name, definition, &flow, reterr);
    if (r < 0)
        return r;
    prefix_learn(up_prefix(up), config->name);
    append_flow(up_flows(up), flow);
    return 0;
}

int up_flows_open(struct up *up, struct det_error *reterr)
{
    const struct config *config = up_config(up);
    int r;

    if (!are_wanted(up))
        return 0;
    r = open_base(up, reterr);
    for (size_t i = 0; r == 0 && i < config->flow_count; i++)
        r = add_flow(up, &config->flows[i], reterr);
    return r;
}

void up_flows_begin(struct up *up)
{
    struct up_flows *flows = up_flows(up);

    if (!flows)
        return;
    flows->has_begun = true;
    for (struct up_flow *flow = flows->first; flow; flow = flow->following)
        up_flow_begin(flow);
}

/* Stopping. */

void up_flows_stop(struct up *up)
{
    struct up_flows *flows = up_flows(up);
    enum up_flow_stop stop = UP_FLOW_STOP_DRAIN;

    if (!flows)
        return;
    if (flows->is_stopping)
        stop = UP_FLOW_STOP_CANCEL;
    flows->is_stopping = true;
    for (struct up_flow *flow = flows->first; flow; flow = flow->following)
        up_flow_leave(flow, stop, 0);
}

bool up_flows_are_over(const struct up *up)
{
    const struct up_flows *flows = up_flows(up);

    return !flows || count_over(flows) == flows->count;
}

size_t up_flows_open_count(const struct up *up)
{
    size_t count = 0;

    for (const struct up_flow *flow = up_flows(up) ? up_flows(up)->first : NULL; flow;
         flow = flow->following)
        count += !up_flow_is_down(flow);
    return count;
}

size_t up_flows_count(const struct up *up)
{
    return up_flows(up) ? up_flows(up)->count : 0;
}

bool up_has_flows(const struct up *up)
{
    return up_flows_count(up) > 0;
}

void up_flows_close(struct up *up)
{
    struct up_flows *flows = up_flows(up);

    if (!flows)
        return;
    det_loop_timer_cancel(up_loop(up), &flows->timer);
    flows->is_stopping = true;
    for (struct up_flow *flow = flows->first; flow; flow = flow->following)
        up_flow_leave(flow, UP_FLOW_STOP_CANCEL, 0);
    while (!up_flows_are_over(up) && det_loop_turn(up_loop(up), DET_NEVER) >= 0)
        ;
    for (size_t i = 0; i < flows->loop_count; i++) {
        det_loop_stop(flows->loops[i]);
        det_loop_close(flows->loops[i]);
    }
    /* Their last messages. */
    (void)det_loop_turn(up_loop(up), 0);
    remove_over(flows);
    up_flow_orders_close(flows);
    if (flows->released)
        det_condition_close(up_world(up), flows->released);
    if (flows->lock)
        det_mutex_close(up_world(up), flows->lock);
    up_set_flows(up, NULL);
    DET_DELETE(up_allocator(up), flows);
}

/* Reload. */

static const struct config_flow *find_config(const struct config *config, const char *name)
{
    for (size_t i = 0; i < config->flow_count; i++) {
        if (strcmp(config->flows[i].name, name) == 0)
            return &config->flows[i];
    }
    return NULL;
}

static bool is_definition_of(const struct up_flow *flow, const struct flow_definition *definition)
{
    return flow_definition_is_same(flow->next ? flow->next : flow->definition, definition);
}

bool up_flow_would_change(
    const struct up *up, const char *name, const struct flow_definition *definition)
{
    const struct up_flow *flow = up_flows_find(up_flows(up), name);

    return flow && !is_definition_of(flow, definition);
}

static int change_flow(struct up *up, const struct config_flow *config, struct det_error *reterr)
{
    struct up_flow *flow = up_flows_find(up_flows(up), config->name);
    struct flow_definition *definition = NULL;
    int r = 0;

    if (!flow) {
        r = add_flow(up, config, reterr);
        if (r == 0)
            up_flow_begin(up_flows_find(up_flows(up), config->name));
        return r;
    }
    r = load_definition(up, config, &definition, reterr);
    if (r < 0)
        return r;
    if (is_definition_of(flow, definition) && !flow->is_leaving)
        flow_definition_close(definition);
    else
        up_flow_replace(flow, definition);
    return 0;
}

int up_flows_reload(struct up *up, struct det_error *reterr)
{
    const struct config *config = up_config(up);
    struct up_flows *flows = up_flows(up);
    int r = 0;

    if (!flows && !are_wanted(up))
        return 0;
    if (!flows)
        r = open_base(up, reterr);
    flows = up_flows(up);
    if (r < 0)
        return r;
    remove_over(flows);
    for (struct up_flow *flow = flows->first; flow; flow = flow->following) {
        if (!find_config(config, flow->name))
            up_flow_leave(flow, UP_FLOW_STOP_DRAIN, 0);
    }
    flows->has_begun = true;
    for (size_t i = 0; i < config->flow_count; i++) {
        struct det_error error = { 0 };
        int one = change_flow(up, &config->flows[i], &error);

        if (one < 0 && r == 0 && reterr)
            *reterr = error;
        r = r < 0 ? r : one;
    }
    return r;
}

/* Holding: any thread. */

static void hold_flow(struct up_flow *flow, struct up_flow_hold *ret)
{
    ret->definition = flow_definition_share(flow->definition);
    ret->folder = flow->journal ? flow->journal + strlen("file:") : NULL;
    ret->internal = flow;
    flow->holds++;
    if (!flow->is_open)
        return;
    ret->journal = det_pipeline_journal(flow->pipeline);
    ret->run = flow->run;
}

int up_flow_hold(struct up *up, const char *name, struct up_flow_hold *ret)
{
    struct up_flows *flows = up_flows(up);
    struct up_flow *flow;

    *ret = (struct up_flow_hold){ 0 };
    if (!flows)
        return DET_ERR_NOT_FOUND;
    det_mutex_lock(up_world(up), flows->lock);
    flow = up_flows_find(flows, name);
    if (flow)
        hold_flow(flow, ret);
    det_mutex_unlock(up_world(up), flows->lock);
    return flow ? 0 : DET_ERR_NOT_FOUND;
}

void up_flow_release(struct up *up, struct up_flow_hold *hold)
{
    struct up_flows *flows = up_flows(up);
    struct up_flow *flow = hold->internal;

    det_mutex_lock(up_world(up), flows->lock);
    det_assert(flow->holds > 0);
    if (--flow->holds == 0)
        det_condition_broadcast(up_world(up), flows->released);
    det_mutex_unlock(up_world(up), flows->lock);
    flow_definition_close(hold->definition);
    *hold = (struct up_flow_hold){ 0 };
}
