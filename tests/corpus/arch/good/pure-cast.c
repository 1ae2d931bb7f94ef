static struct link_next link_in_up(const struct link_view *view)
{
    const struct link_observed *observed = (const struct link_observed *)view->all->observed;
    unsigned tries = (unsigned)observed->tries;

    return link_hold(det_reason(view->all, "%u", tries * (tries + 1)));
}
