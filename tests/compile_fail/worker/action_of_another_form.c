/* expect: conflicting types */
#include "both.h"

static struct link_next link_in_stopped(const struct link_view *view)
{
    (void)view;
    return link_goto(LINK_UP, "start wanted");
}

static struct link_next link_in_up(const struct link_view *view)
{
    return view->observed->is_up ? link_hold("it is up") : link_do(LINK_CONNECT, "it is down");
}

#ifndef MENDED
static int link_do_connect(
    struct det_worker_context *context, struct det_empty *deps, struct det_empty *desired)
#else
static int link_do_connect(
    struct det_worker_context *context, struct det_empty *deps, const struct det_empty *desired)
#endif
{
    (void)context;
    (void)deps;
    (void)desired;
    return 0;
}
