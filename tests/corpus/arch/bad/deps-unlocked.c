static struct link_next link_in_up(const struct link_view *view)
{
    (void)view;
    return link_hold("it is up");
}

static int link_do_connect(
    struct det_worker_context *context, struct link_deps *deps, const struct link_desired *desired)
{
    det_worker_lock(context);
    deps->tries++;
    det_worker_unlock(context);
    return knock(deps, desired->port);
}

static int link_collect(
    struct det_worker_context *context, struct link_deps *deps, const struct link_desired *desired,
    struct link_observed *observed)
{
    (void)context;
    (void)desired;
    observed->tries = deps->tries; /* here */
    return 0;
}
