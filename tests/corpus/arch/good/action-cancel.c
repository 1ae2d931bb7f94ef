static struct link_next link_in_up(const struct link_view *view)
{
    (void)view;
    return link_hold("it is up");
}

static size_t sum(size_t a, size_t b)
{
    return a + b;
}

static int knock_once(struct det_worker_context *context, unsigned i)
{
    return det_worker_is_cancelled(context) ? DET_ERR_CANCELLED : knock(i);
}

static int link_do_connect(
    struct det_worker_context *context, struct link_deps *deps, const struct link_desired *desired)
{
    size_t length = 0;

    while (desired->host[length])
        length += strlen("x");
    for (unsigned i = 0; i < desired->port; i++) {
        if (det_worker_is_cancelled(context))
            return DET_ERR_CANCELLED;
        knock(deps, i);
    }
    for (unsigned i = 0; i < desired->port; i++)
        link_knock_close(deps, i);
    for (unsigned i = 0; i < desired->port; i++)
        knock_once(context, i);
    for (unsigned i = 0; i < desired->port; i++)
        length = sum(length, i);
    return 0;
}
