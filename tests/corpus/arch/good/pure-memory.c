static struct link_next link_in_up(const struct link_view *view)
{
    return link_hold(det_reason(view->all, "%s is up", view->desired->host));
}
