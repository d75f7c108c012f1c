/* Calls all functions of the library, against a server of predefined responses: client SOCKET TCP-PORT. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ibfabric_acm.h"

_Static_assert(sizeof(struct ib_acm_path_record) == 64, "a path record has 64 bytes");
_Static_assert(offsetof(struct ib_acm_path_record, dlid) == 40, "as on the wire");
_Static_assert(offsetof(struct ib_acm_path_record, pkey) == 50, "as on the wire");
_Static_assert(offsetof(struct ib_acm_path_record, preference) == 57, "as on the wire");
_Static_assert(sizeof(struct ib_acm_path) == 72, "as librdmacm has it");

_Static_assert(sizeof(struct ib_acm_endpoint) == LAYOUT_ENDPOINT, "as the library has it");
_Static_assert(offsetof(struct ib_acm_endpoint, pkey) == LAYOUT_ENDPOINT_PKEY, "as above");
_Static_assert(offsetof(struct ib_acm_endpoint, port_count) == LAYOUT_ENDPOINT_PORT_COUNT, "as above");
_Static_assert(offsetof(struct ib_acm_endpoint, provider) == LAYOUT_ENDPOINT_PROVIDER, "as above");
_Static_assert(sizeof(struct ib_acm_address) == LAYOUT_ADDRESS, "as above");
_Static_assert(sizeof(struct ib_acm_path) == LAYOUT_PATH, "as above");
_Static_assert(offsetof(struct ib_acm_path, record) == LAYOUT_PATH_RECORD, "as above");
_Static_assert(sizeof(struct ib_acm_path_record) == LAYOUT_RECORD, "as above");
_Static_assert(_Alignof(struct ib_acm_path_record) == LAYOUT_RECORD_ALIGNMENT, "as above");

#define CHECK(what)                                                                            \
    do {                                                                                       \
        if (!(what)) {                                                                         \
            fprintf(stderr, "%d: %s: errno %d, %s\n", __LINE__, #what, errno,                  \
                    ib_acm_error_string());                                                    \
            exit(1);                                                                           \
        }                                                                                      \
    } while (0)

/* Checks that a call fails, with an error and a text. */
#define FAILS(call, error, text)                                                               \
    do {                                                                                       \
        errno = 0;                                                                             \
        CHECK((call) == -1);                                                                   \
        CHECK(errno == (error));                                                               \
        CHECK(strstr(ib_acm_error_string(), text));                                            \
    } while (0)

static struct ib_acm_client *client;

static void resolves_names(void)
{
    struct ib_acm_path *paths = NULL;
    size_t count = 0;

    CHECK(ib_acm_resolve_name(client, "a", "node7", &paths, &count, IB_ACM_NODELAY) == 0);
    CHECK(count == 2);
    CHECK(paths[0].flags == (IB_ACM_PATH_GMP | IB_ACM_PATH_PRIMARY | IB_ACM_PATH_OUTBOUND |
                             IB_ACM_PATH_INBOUND_REVERSIBLE));
    CHECK(ntohs(paths[0].record.dlid) == 7 && ntohs(paths[1].record.dlid) == 8);
    CHECK(paths[0].record.dgid[15] == 7 && ntohs(paths[0].record.pkey) == 0xffff);
    ib_acm_free_paths(paths);
    ib_acm_free_paths(NULL);
}

static void resolves_addresses(void)
{
    struct sockaddr_in to = {.sin_family = AF_INET};
    struct sockaddr_in6 to6 = {.sin6_family = AF_INET6};
    struct sockaddr other = {.sa_family = AF_UNIX};
    struct ib_acm_path *paths;
    size_t count;

    to.sin_addr.s_addr = htonl(0x0a010207);
    CHECK(ib_acm_resolve_ip(client, NULL, (struct sockaddr *)&to, &paths, &count, 0) == 0);
    CHECK(count == 1 && ntohs(paths[0].record.dlid) == 7);
    ib_acm_free_paths(paths);
    to6.sin6_addr.s6_addr[3] = 9;
    CHECK(ib_acm_resolve_ip(client, (struct sockaddr *)&to, (struct sockaddr *)&to6, &paths, &count,
                            0) == 0);
    CHECK(count == 1 && ntohs(paths[0].record.dlid) == 9);
    ib_acm_free_paths(paths);
    FAILS(ib_acm_resolve_ip(client, NULL, &other, &paths, &count, 0), EINVAL, "family 1");
    FAILS(ib_acm_resolve_ip(client, NULL, NULL, &paths, &count, 0), EINVAL, "the destination is NULL");
}

static void resolves_paths(void)
{
    struct ib_acm_path_record path = {.slid = htons(1), .dlid = htons(30)};

    CHECK(ib_acm_resolve_path(client, &path, IB_ACM_QUERY_SA) == 0);
    CHECK(ntohs(path.dlid) == 30 && path.dgid[15] == 30);
    FAILS(ib_acm_resolve_path(client, NULL, 0), EINVAL, "the path is NULL");
    FAILS(ib_acm_resolve_path(client, &path, 4), EINVAL, "flags 0x4");
    FAILS(ib_acm_resolve_path(NULL, &path, 0), EINVAL, "the connection is NULL");
}

static void maps_errors(void)
{
    static const struct {
        const char *name;
        int error;
    } refusals[] = {
        {"status1", ENOMEM},        {"status2", EINVAL},        {"status3", ENODATA},
        {"status5", ENOTCONN},      {"status6", ETIMEDOUT},     {"status7", EADDRNOTAVAIL},
        {"status8", EINVAL},        {"status9", EADDRNOTAVAIL}, {"status10", EINVAL},
        {"status99", EINVAL},
    };
    struct ib_acm_path *const untouched = (struct ib_acm_path *)&refusals;
    struct ib_acm_path *paths = untouched;
    size_t count = 17;

    for (size_t i = 0; i < sizeof(refusals) / sizeof(*refusals); i++)
        FAILS(ib_acm_resolve_name(client, NULL, refusals[i].name, &paths, &count, 0),
              refusals[i].error, "the service rejected");
    FAILS(ib_acm_resolve_name(client, NULL, NULL, &paths, &count, 0), EINVAL, "NULL");
    FAILS(ib_acm_resolve_name(client, NULL, "", &paths, &count, 0), EINVAL, "empty");
    FAILS(ib_acm_resolve_name(client, "\xff", "a", &paths, &count, 0), EINVAL, "the source: ");
    FAILS(ib_acm_resolve_name(client, NULL, "a", NULL, &count, 0), EINVAL, "NULL");
    FAILS(ib_acm_resolve_name(client, NULL, "a", &paths, NULL, 0), EINVAL, "NULL");
    FAILS(ib_acm_resolve_name(NULL, NULL, "a", &paths, &count, 0), EINVAL, "the connection is NULL");
    CHECK(paths == untouched && count == 17);
}

static void reads_counters(void)
{
    uint64_t *counters;
    size_t count;

    CHECK(ib_acm_query_perf(client, 0, &counters, &count) == 0);
    CHECK(count == 7 && counters[IB_ACM_ERRORS] == 1 && counters[IB_ACM_ROUTE_CACHED] == 7);
    ib_acm_free_perf(counters);
    FAILS(ib_acm_query_perf(client, 9, &counters, &count), EADDRNOTAVAIL, "source address");
    FAILS(ib_acm_query_perf(client, 256, &counters, &count), EINVAL, "endpoint 256");
    FAILS(ib_acm_query_perf(client, 0, NULL, &count), EINVAL, "NULL");
    ib_acm_free_perf(NULL);
}

static void reads_endpoints(void)
{
    struct ib_acm_endpoint endpoint;
    struct ib_acm_address *addresses;
    size_t count;

    CHECK(ib_acm_query_endpoint(client, 0, 1, &endpoint, &addresses, &count) == 0);
    CHECK(endpoint.device_guid == 0x1122334455667788 && endpoint.pkey == 0x8001);
    CHECK(endpoint.port == 2 && endpoint.port_count == 3);
    CHECK(strcmp(endpoint.provider, "ibacmp") == 0);
    CHECK(count == 2 && strcmp(addresses[0].text, "node7") == 0);
    CHECK(strcmp(addresses[1].text, "10.0.0.7") == 0);
    ib_acm_free_addresses(addresses);
    ib_acm_free_addresses(NULL);
    FAILS(ib_acm_query_endpoint(client, 0, 2, &endpoint, &addresses, &count), EINVAL, "rejected");
    FAILS(ib_acm_query_endpoint(client, 0, 0, &endpoint, &addresses, &count), EINVAL, "endpoint 0");
    FAILS(ib_acm_query_endpoint(client, 256, 1, &endpoint, &addresses, &count), EINVAL, "port 256");
    FAILS(ib_acm_query_endpoint(client, 0, 1, NULL, &addresses, &count), EINVAL, "NULL");
    FAILS(ib_acm_query_endpoint(client, 0, 1, &endpoint, NULL, &count), EINVAL, "NULL");
    FAILS(ib_acm_query_endpoint(NULL, 0, 1, &endpoint, &addresses, &count), EINVAL, "the connection is NULL");
}

static void *resolves_often(void *nothing)
{
    (void)nothing;
    for (int i = 0; i < 100; i++)
        resolves_names();
    return NULL;
}

static void serves_many_threads(void)
{
    pthread_t threads[4];

    for (int i = 0; i < 4; i++)
        CHECK(pthread_create(&threads[i], NULL, resolves_often, NULL) == 0);
    for (int i = 0; i < 4; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
}

static void survives_the_end_of_the_service(void)
{
    struct ib_acm_path *paths;
    size_t count;

    CHECK(ib_acm_set_patience(client, 50) == 0);
    FAILS(ib_acm_resolve_name(client, NULL, "silence", &paths, &count, 0), ETIMEDOUT, "within 0.05");
    CHECK(ib_acm_set_patience(client, 10000) == 0);
    resolves_names();
    FAILS(ib_acm_resolve_name(client, NULL, "goodbye", &paths, &count, 0), ECONNRESET, "closed the connection");
    FAILS(ib_acm_resolve_name(client, NULL, "a", &paths, &count, 0), ECONNRESET, "closed the connection");
    FAILS(ib_acm_set_patience(NULL, 50), EINVAL, "NULL");
    ib_acm_disconnect(client);
    ib_acm_disconnect(NULL);
}

/* A closed connection causes an error, not SIGPIPE. */
static void survives_a_service_that_is_gone(const char *socket)
{
    struct ib_acm_path *paths;
    size_t count;

    client = ib_acm_connect(socket);
    CHECK(client);
    CHECK(ib_acm_resolve_name(client, NULL, "farewell", &paths, &count, 0) == 0);
    ib_acm_free_paths(paths);
    usleep(50000);
    CHECK(ib_acm_resolve_name(client, NULL, "a", &paths, &count, 0) == -1);
    CHECK(errno == EPIPE || errno == ECONNRESET);
    ib_acm_disconnect(client);
}

int main(int argc, char **argv)
{
    CHECK(argc == 3);
    CHECK(strcmp(ib_acm_error_string(), "") == 0);
    CHECK(!ib_acm_connect("/nowhere/acm.sock") && errno == ENOENT);
    CHECK(strstr(ib_acm_error_string(), "/nowhere/acm.sock"));
    CHECK(!ib_acm_connect("") && errno == EINVAL);
    CHECK(!ib_acm_connect_tcp(NULL, 1) && errno == EINVAL);

    client = ib_acm_connect(argv[1]);
    CHECK(client);
    resolves_names();
    resolves_addresses();
    resolves_paths();
    maps_errors();
    reads_counters();
    reads_endpoints();
    serves_many_threads();
    survives_the_end_of_the_service();
    survives_a_service_that_is_gone(argv[1]);

    client = ib_acm_connect_tcp("127.0.0.1", (uint16_t)atoi(argv[2]));
    CHECK(client);
    resolves_names();
    ib_acm_disconnect(client);
    return 0;
}
