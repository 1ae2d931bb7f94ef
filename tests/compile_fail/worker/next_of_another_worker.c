/* expect: incompatible */
#include "both.h"

static struct link_next link_in_stopped(const struct link_view *view)
{
    (void)view;
    return link_goto(LINK_UP, "start wanted");
}

static struct link_next link_in_up(const struct link_view *view)
{
    if (!view->observed->is_up)
#ifndef MENDED
        return lamp_hold("it is down");
#else
        return link_hold("it is down");
#endif
    return link_hold("it is up");
}

static int link_do_connect(
    struct det_worker_context *context, struct det_empty *deps, const struct det_empty *desired)
{
    (void)context;
    (void)deps;
    (void)desired;
    return 0;
}
