static struct link_next link_in_up(const struct link_view *view)
{
    (void)view;
    return link_hold(" "); /* here */
}
