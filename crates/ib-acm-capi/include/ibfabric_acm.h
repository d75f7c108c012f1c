/*
 * ibfabric_acm.h: programs ask the service of IB ACM for paths, with libibfabric_acm.so.
 *
 * The service runs on the same machine, as a rule: "ibfabric acm", or ibacm of rdma-core. It resolves names and
 * addresses of an InfiniBand fabric to path records and remembers what it has found.
 *
 *     struct ib_acm_client *client = ib_acm_connect(NULL);
 *     struct ib_acm_path *paths;
 *     size_t count;
 *
 *     if (!client)
 *         errx(1, "%s", ib_acm_error_string());
 *     if (ib_acm_resolve_name(client, NULL, "node7", &paths, &count, 0))
 *         errx(1, "%s", ib_acm_error_string());
 *     printf("LID %u\n", (unsigned) ntohs(paths[0].record.dlid));
 *     ib_acm_free_paths(paths);
 *     ib_acm_disconnect(client);
 *
 * Every call waits for its answer. Any number of threads may use one connection, and wait for their turn on it; those
 * that shall not wait for each other have a connection each. A connection must not be used in a child after fork().
 *
 * What fails returns -1 or NULL and sets errno; ib_acm_error_string() then says more. Nothing is stored in the places
 * for an answer when there is none. The errors:
 *
 *     EINVAL         an argument that cannot be; or the service does not understand the request or the type of an
 *                    address, does not know the number of an endpoint, or cannot choose a source for the destination
 *     EADDRNOTAVAIL  no endpoint of the service has the source, or the destination is no address
 *     ENODATA        the service does not know what is asked for
 *     ENOTCONN       the service has no port that works
 *     ETIMEDOUT      nobody has answered the service, or the service has not answered
 *     ENOMEM         the service or the program has no memory
 *     EPROTO         what is connected to does not speak the service's protocol
 *     ECONNRESET     the service has ended the connection
 *     EHOSTUNREACH   the host of the service is not known
 *     EIO            the library has failed
 *     others         as connect(), read() and write() have them, such as ENOENT and ECONNREFUSED when there is no
 *                    service
 *
 * After EPROTO, ECONNRESET and errors of the system a connection is of no further use: all calls on it fail with the
 * same error until it is ended. After all others it can be used on.
 */
#ifndef IBFABRIC_ACM_H
#define IBFABRIC_ACM_H

#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A connection to a service. */
struct ib_acm_client;

/*
 * A path record of InfiniBand. All numbers of more than a byte are in network order.
 */
struct ib_acm_path_record {
    uint64_t service_id;
    uint8_t dgid[16];              /* the destination's GID */
    uint8_t sgid[16];              /* the source's GID */
    uint16_t dlid;                 /* the destination's LID */
    uint16_t slid;                 /* the source's LID */
    uint32_t flow_label_hop_limit; /* bit 31 raw traffic, bits 27 to 8 flow label, bits 7 to 0 hop limit */
    uint8_t traffic_class;
    uint8_t reversible_numb_path;  /* bit 7: works in both directions; the other bits are for requests */
    uint16_t pkey;
    uint16_t qos_class_sl;         /* bits 15 to 4 class of quality of service, bits 3 to 0 service level */
    uint8_t mtu;                   /* bits 7 and 6 how it is compared, bits 5 to 0 the MTU's code */
    uint8_t rate;                  /* the same with the rate's code */
    uint8_t packet_life_time;      /* the same with the code of the life time */
    uint8_t preference;
    uint8_t reserved[6];
};

/* What the paths of an answer are for; bits of ib_acm_path.flags. */
#define IB_ACM_PATH_GMP 0x01u                /* connection management */
#define IB_ACM_PATH_PRIMARY 0x02u            /* the first choice */
#define IB_ACM_PATH_ALTERNATE 0x04u          /* when the first does not work */
#define IB_ACM_PATH_OUTBOUND 0x08u           /* to the destination */
#define IB_ACM_PATH_INBOUND 0x10u            /* from the destination */
#define IB_ACM_PATH_INBOUND_REVERSIBLE 0x20u /* from the destination, as the reverse of the one to it */

/*
 * A path of an answer. Its 72 bytes are those that rdma_set_option() of librdmacm takes as RDMA_OPTION_IB_PATH, any
 * number of them one behind the other.
 */
struct ib_acm_path {
    uint32_t flags; /* IB_ACM_PATH_..., in the machine's order */
    uint32_t reserved;
    struct ib_acm_path_record record;
};

/* An endpoint of a service: a port in a partition. All numbers are in the machine's order. */
struct ib_acm_endpoint {
    uint64_t device_guid; /* the adapter's GUID */
    uint16_t pkey;
    uint8_t port;
    uint8_t port_count;   /* how many the adapter has */
    uint32_t reserved;
    char provider[65];    /* who resolves for it */
};

/* A name or an address as the service writes it. */
struct ib_acm_address {
    char text[65];
};

/* How paths are looked for: the parameter "flags". */
#define IB_ACM_NODELAY 0x40000000u  /* only what the service knows already; ENODATA for what it does not */
#define IB_ACM_QUERY_SA 0x80000000u /* the service asks subnet administration; for ib_acm_resolve_path() */

/* Which counter is which, by its place. A service may have fewer, or more behind them. */
enum ib_acm_counter {
    IB_ACM_ERRORS,          /* requests that failed */
    IB_ACM_RESOLVES,        /* requests to resolve */
    IB_ACM_NO_DATA,         /* requests for what was to be known already and was not */
    IB_ACM_ADDRESS_QUERIES, /* addresses that others were asked for */
    IB_ACM_ADDRESS_CACHED,  /* addresses that were known */
    IB_ACM_ROUTE_QUERIES,   /* routes that subnet administration was asked for */
    IB_ACM_ROUTE_CACHED     /* routes that were known */
};

/*
 * Connects to a service, in 5 seconds at most, and returns the connection; NULL when that fails.
 *
 * service: the path of a socket when it begins with '/'; otherwise the name or the address of a host, whose TCP port
 * is the one in this machine's /run/ibacm.port, or 6125. NULL finds this machine's service as librdmacm does: at the
 * TCP port in /run/ibacm.port, or else at the socket /run/ibacm.sock.
 */
struct ib_acm_client *ib_acm_connect(const char *service);

/*
 * Connects to a service at a TCP port, which is in the machine's order; the rest is as with ib_acm_connect(). The look-up
 * of a name takes as long as it takes.
 */
struct ib_acm_client *ib_acm_connect_tcp(const char *host, uint16_t port);

/*
 * Ends a connection, which no other call may use any longer. What was answered on it stays. Nothing happens for NULL.
 */
void ib_acm_disconnect(struct ib_acm_client *client);

/*
 * Sets how long answers may take from now on, in milliseconds; 30000 unless set. A service asks others several times, for
 * seconds each. The time starts with a call's turn on the connection. Returns 0, or -1 when there is no connection.
 */
int ib_acm_set_patience(struct ib_acm_client *client, unsigned int milliseconds);

/*
 * Resolves the name of an endpoint, 1 to 63 bytes of UTF-8, to paths from another.
 *
 * source: NULL leaves the source to the service, which ibacm cannot choose for a name.
 * paths, count: where the paths and their number, 1 or more, are stored. ib_acm_free_paths() gives them back.
 * flags: IB_ACM_NODELAY or 0.
 * Returns 0, or -1 when that fails.
 */
int ib_acm_resolve_name(struct ib_acm_client *client, const char *source, const char *destination,
                        struct ib_acm_path **paths, size_t *count, uint32_t flags);

/*
 * The same for IP addresses of the families AF_INET and AF_INET6, whose ports mean nothing. The addresses are as long as
 * those of their families: struct sockaddr_in and struct sockaddr_in6.
 */
int ib_acm_resolve_ip(struct ib_acm_client *client, const struct sockaddr *source,
                      const struct sockaddr *destination, struct ib_acm_path **paths,
                      size_t *count, uint32_t flags);

/*
 * Resolves a path between GIDs or LIDs, of which the source's may be zero. The answer, of first choice when there are
 * several, replaces it.
 *
 * flags: IB_ACM_NODELAY, IB_ACM_QUERY_SA, both or 0. With IB_ACM_QUERY_SA the source is one of this machine, and errors
 * come from subnet administration: ENODATA when it has no such path, EINVAL and others as its status happens to read.
 * Returns 0, or -1 when that fails.
 */
int ib_acm_resolve_path(struct ib_acm_client *client, struct ib_acm_path_record *path,
                        uint32_t flags);

/* Gives paths back. Nothing happens for NULL. */
void ib_acm_free_paths(struct ib_acm_path *paths);

/*
 * Reads counters.
 *
 * index: 0 for those of the whole service, 1 to 255 for those of an endpoint.
 * counters, count: where the counters, in the machine's order, and their number are stored. ib_acm_free_perf() gives them
 * back; enum ib_acm_counter says which is which.
 * Returns 0, or -1 when that fails.
 */
int ib_acm_query_perf(struct ib_acm_client *client, unsigned int index, uint64_t **counters,
                      size_t *count);

/* Gives counters back. Nothing happens for NULL. */
void ib_acm_free_perf(uint64_t *counters);

/*
 * Asks for an endpoint of the service.
 *
 * port: 0 for endpoints of all ports, or the number of those that are counted.
 * index: which one, from 1 to 255; EINVAL when there are not so many.
 * endpoint: where it is stored.
 * addresses, count: where its names and addresses and their number are stored. ib_acm_free_addresses() gives them back.
 * Returns 0, or -1 when that fails.
 */
int ib_acm_query_endpoint(struct ib_acm_client *client, unsigned int port, unsigned int index,
                          struct ib_acm_endpoint *endpoint, struct ib_acm_address **addresses,
                          size_t *count);

/* Gives names and addresses back. Nothing happens for NULL. */
void ib_acm_free_addresses(struct ib_acm_address *addresses);

/*
 * Returns what failed last in the calling thread, for people; an empty text when nothing has. It is never NULL, and is
 * there until the next call that fails in this thread.
 */
const char *ib_acm_error_string(void);

#ifdef __cplusplus
}
#endif

#endif
