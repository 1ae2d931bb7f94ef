static struct link_next link_in_up(const struct link_view *view)
{
    (void)view;
    return link_hold("it is up");
}

static int link_children(const struct link_view *view, struct det_children *children)
{
    (void)view;
    pthread_mutex_lock(children->lock); /* here */
    return 0;
}
