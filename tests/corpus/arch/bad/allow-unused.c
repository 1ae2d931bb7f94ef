static struct link_next link_in_up(const struct link_view *view)
{
    (void)view;
    // detent: allow pure-io because it was needed once here
    return link_hold("it is up");
}
