/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* flow_orders.c - orders to flows: run, drain, cancel. They are answered at once, or when the flow
 * is down. */
#include "daemon/flows_internal.h"

#include <string.h>

#include "base/assert.h"
#include "base/memory.h"
#include "daemon/life.h"

/* A request that waits until its flow is down. */
struct flow_wait {
    struct det_list node;
    struct up_flow *flow;
    struct up_request *request;
};

static void free_wait(struct flow_wait *wait)
{
    det_list_remove(&wait->node);
    DET_DELETE(up_allocator(wait->flow->flows->up), wait);
}

static void on_gone(void *user)
{
    free_wait(user);
}

static void answer(struct up_flow *flow, struct up_request *request)
{
    if (up_write_flow(flow->flows->up, request->json, flow->name) < 0) {
        up_request_fail_memory(request);
        return;
    }
    up_request_part(request);
    up_request_end(request);
}

static void wait_for_end(struct up_flow *flow, struct up_request *request)
{
    struct flow_wait *wait = DET_NEW(up_allocator(flow->flows->up), struct flow_wait);

    if (!wait) {
        up_request_fail_memory(request);
        return;
    }
    wait->flow = flow;
    wait->request = request;
    det_list_init(&wait->node);
    det_list_append(&flow->flows->waits, &wait->node);
    up_request_keep(request, on_gone, wait);
}

void up_flow_changed(struct up_flow *flow)
{
    struct det_list *waits = &flow->flows->waits, *next;

    if (!up_flow_is_down(flow))
        return;
    for (struct det_list *node = waits->next; node != waits; node = next) {
        struct flow_wait *wait = DET_CONTAINER(node, struct flow_wait, node);
        struct up_request *request = wait->request;

        next = node->next;
        if (wait->flow != flow)
            continue;
        free_wait(wait);
        answer(flow, request);
    }
}

void up_flow_orders_close(struct up_flows *flows)
{
    det_assert(det_list_is_empty(&flows->waits));
}

void up_order_flow(struct up *up, struct up_request *request, const struct up_flow_order *order)
{
    struct up_flow *flow = up_flows_find(up_flows(up), order->name);

    if (!flow) {
        up_request_fail(request, DET_ERR_NOT_FOUND, "there is no flow '%s'", order->name);
        return;
    }
    if (up_is_stopping(up) && order->kind == UP_FLOW_RUN) {
        up_request_fail(request, DET_ERR_BUSY, CLI_SHUTDOWN);
        return;
    }
    switch (order->kind) {
    case UP_FLOW_RUN:
        up_flow_start(flow);
        break;
    case UP_FLOW_DRAIN:
        up_flow_stop(flow, UP_FLOW_STOP_DRAIN, order->timeout);
        break;
    case UP_FLOW_CANCEL:
        up_flow_stop(flow, UP_FLOW_STOP_CANCEL, 0);
        break;
    }
    if (order->waits && order->kind != UP_FLOW_RUN && !up_flow_is_down(flow))
        wait_for_end(flow, request);
    else
        answer(flow, request);
}
