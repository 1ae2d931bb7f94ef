static struct link_next link_in_up(const struct link_view *view)
{
    (void)view;
    return link_hold("it is up");
}

/* Called under the lock only. */
static void forget(struct link_deps *deps)
{
    deps->tries = 0;
}

static int link_do_connect(
    struct det_worker_context *context, struct link_deps *deps, const struct link_desired *desired)
{
    det_worker_lock(context);
    if (desired->port == 0)
        forget(deps);
    deps->tries++;
    det_worker_unlock(context);
    deps->mine = desired->port;
    return knock(deps, deps->address);
}

static int link_collect(
    struct det_worker_context *context, struct link_deps *deps, const struct link_desired *desired,
    struct link_observed *observed)
{
    (void)desired;
    det_worker_lock(context);
    observed->tries = deps->tries;
    det_worker_unlock(context);
    observed->is_up = answers(deps->address);
    return 0;
}
