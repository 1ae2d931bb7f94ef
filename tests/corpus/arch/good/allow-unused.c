static struct link_next link_in_up(const struct link_view *view)
{
    (void)view;
    return link_hold(getenv("HOME")); /* detent: allow pure-io because it never changes */
}
