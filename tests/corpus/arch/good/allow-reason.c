static struct link_next link_in_up(const struct link_view *view)
{
    (void)view;
    /* detent: allow reason-empty because the console
     * shows the state alone */
    return link_hold("");
}
