static struct link_next link_in_up(const struct link_view *view)
{
    (void)view;
    return link_hold("it is up");
}

static int link_do_connect(
    struct det_worker_context *context, struct link_deps *deps, const struct link_desired *desired)
{
    (void)context;
    return knock(deps, desired->port);
}

static int link_collect(
    struct det_worker_context *context, struct link_deps *deps, const struct link_desired *desired,
    struct link_observed *observed)
{
    observed->tries = 0;
    return link_do_connect(context, deps, desired); /* here */
}
