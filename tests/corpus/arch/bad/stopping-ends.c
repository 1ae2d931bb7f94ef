static struct link_next link_in_closing(const struct link_view *view) /* here */
{
    (void)view;
    return link_do(LINK_CLOSE, "it is up");
}
