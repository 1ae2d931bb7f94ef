struct link_deps;
struct link_deps {
    int socket;
};
enum { LIMIT = 3 };
typedef int compare_fn(const void *a, const void *b);
static int connect_once(struct link_deps *deps);
extern const struct det_worker_kind other_kind;
static const char *const names[] = { "a", "b" };

static struct link_next link_in_up(const struct link_view *view)
{
    static const unsigned limit = LIMIT;

    return link_hold(names[view->observed->tries % limit]);
}
