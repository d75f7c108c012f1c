/*
 * ibfabric_acm.h: the client of the ACM service, libibfabric_acm.so.
 *
 * The service resolves names and addresses of an InfiniBand fabric to path records, and caches them. It is "ibfabric
 * acm", or ibacm of rdma-core, and usually runs on the same host.
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
 * All calls block until the response is received. Several threads may use one connection; their calls are serialized.
 * Use one connection per thread for parallel calls. A connection must not be used in a child after fork().
 *
 * A failed call returns -1 or NULL, sets errno, and does not write its output parameters. ib_acm_error_string() returns
 * a description. The errors:
 *
 *     EINVAL         an argument is invalid; or the service does not support the request or the type of an address,
 *                    has no endpoint with this index, or cannot choose a source for the destination
 *     EADDRNOTAVAIL  no endpoint of the service has the source address, or the destination address is invalid
 *     ENODATA        the service has no data for the request
 *     ENOTCONN       the service has no active port
 *     ETIMEDOUT      the service, or a peer or SA that it queries, has not responded in time
 *     ENOMEM         the service or the program is out of memory
 *     EPROTO         the peer does not use the protocol of the ACM service
 *     ECONNRESET     the service has closed the connection
 *     EHOSTUNREACH   the host name of the service cannot be resolved
 *     EIO            internal error of the library
 *     others         errors of connect(), read() and write(), such as ENOENT and ECONNREFUSED if no service is running
 *
 * After EPROTO, ECONNRESET and errors of system calls, all further calls on the connection fail with the same error.
 * After other errors the connection remains usable.
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
 * A path record of InfiniBand. Numbers of more than one byte are in network byte order.
 */
struct ib_acm_path_record {
    uint64_t service_id;
    uint8_t dgid[16];              /* destination GID */
    uint8_t sgid[16];              /* source GID */
    uint16_t dlid;                 /* destination LID */
    uint16_t slid;                 /* source LID */
    uint32_t flow_label_hop_limit; /* bit 31 raw traffic, bits 27 to 8 flow label, bits 7 to 0 hop limit */
    uint8_t traffic_class;
    uint8_t reversible_numb_path;  /* bit 7 reversible, bits 6 to 0 number of paths (requests) */
    uint16_t pkey;
    uint16_t qos_class_sl;         /* bits 15 to 4 QoS class, bits 3 to 0 SL */
    uint8_t mtu;                   /* bits 7 and 6 selector, bits 5 to 0 MTU code */
    uint8_t rate;                  /* bits 7 and 6 selector, bits 5 to 0 rate code */
    uint8_t packet_life_time;      /* bits 7 and 6 selector, bits 5 to 0 life time code */
    uint8_t preference;
    uint8_t reserved[6];
};

/* Flags of a path: bits of ib_acm_path.flags. */
#define IB_ACM_PATH_GMP 0x01u                /* for GMPs: communication management */
#define IB_ACM_PATH_PRIMARY 0x02u            /* primary path */
#define IB_ACM_PATH_ALTERNATE 0x04u          /* alternate path */
#define IB_ACM_PATH_OUTBOUND 0x08u           /* to the destination */
#define IB_ACM_PATH_INBOUND 0x10u            /* from the destination */
#define IB_ACM_PATH_INBOUND_REVERSIBLE 0x20u /* from the destination: the reverse of the outbound path */

/*
 * A path of a result. An array of these structures can be passed to rdma_set_option() of librdmacm as
 * RDMA_OPTION_IB_PATH.
 */
struct ib_acm_path {
    uint32_t flags; /* IB_ACM_PATH_..., in host byte order */
    uint32_t reserved;
    struct ib_acm_path_record record;
};

/* An endpoint of the service: a port in a partition. Numbers are in host byte order. */
struct ib_acm_endpoint {
    uint64_t device_guid; /* GUID of the HCA */
    uint16_t pkey;
    uint8_t port;
    uint8_t port_count;   /* number of ports of the HCA */
    uint32_t reserved;
    char provider[65];    /* name of the ACM provider */
};

/* A name or an address as text. */
struct ib_acm_address {
    char text[65];
};

/* Flags of a request: the parameter "flags". */
#define IB_ACM_NODELAY 0x40000000u  /* respond from the cache only; else ENODATA */
#define IB_ACM_QUERY_SA 0x80000000u /* query the SA; only for ib_acm_resolve_path() */

/* Indices of the counters. A service may have fewer, or further ones behind them. */
enum ib_acm_counter {
    IB_ACM_ERRORS,          /* failed requests */
    IB_ACM_RESOLVES,        /* requests to resolve an address */
    IB_ACM_NO_DATA,         /* requests with IB_ACM_NODELAY without a cached result */
    IB_ACM_ADDRESS_QUERIES, /* addresses resolved by queries to peers */
    IB_ACM_ADDRESS_CACHED,  /* addresses found in the cache */
    IB_ACM_ROUTE_QUERIES,   /* routes resolved by SA queries */
    IB_ACM_ROUTE_CACHED     /* routes found in the cache */
};

/*
 * Connects to a service within 5 seconds. Returns the connection, or NULL on failure.
 *
 * service: the path of a Unix socket if it starts with '/'; else the name or address of a host, with the TCP port in
 * /run/ibacm.port of this host, or 6125. NULL selects the service of this host as librdmacm does: the TCP port in
 * /run/ibacm.port, or else the socket /run/ibacm.sock.
 */
struct ib_acm_client *ib_acm_connect(const char *service);

/*
 * Connects to a service at a TCP port (host byte order), like ib_acm_connect(). The resolution of a host name is not
 * limited in time.
 */
struct ib_acm_client *ib_acm_connect_tcp(const char *host, uint16_t port);

/*
 * Closes a connection. No other call may use it now or later. Results of earlier calls remain valid. NULL is ignored.
 */
void ib_acm_disconnect(struct ib_acm_client *client);

/*
 * Sets the timeout of responses in milliseconds; the default is 30000. A service may query peers several times, for
 * seconds each. The time starts when the call has locked the connection. Returns 0, or -1 if client is NULL.
 */
int ib_acm_set_patience(struct ib_acm_client *client, unsigned int milliseconds);

/*
 * Resolves the name of an endpoint, 1 to 63 bytes of UTF-8, to paths from a source endpoint.
 *
 * source: the name of the source; NULL lets the service choose it, which ibacm does not support for names.
 * paths, count: receive the paths and their number, at least 1. Free the paths with ib_acm_free_paths().
 * flags: IB_ACM_NODELAY or 0.
 * Returns 0, or -1 on failure.
 */
int ib_acm_resolve_name(struct ib_acm_client *client, const char *source, const char *destination,
                        struct ib_acm_path **paths, size_t *count, uint32_t flags);

/*
 * Resolves an IP address, like ib_acm_resolve_name(). The addresses are struct sockaddr_in (AF_INET) or struct
 * sockaddr_in6 (AF_INET6). Their ports are ignored.
 */
int ib_acm_resolve_ip(struct ib_acm_client *client, const struct sockaddr *source,
                      const struct sockaddr *destination, struct ib_acm_path **paths,
                      size_t *count, uint32_t flags);

/*
 * Resolves a path between GIDs or LIDs. The source may be zero. The path is replaced by the result, the primary path if
 * there are several.
 *
 * flags: IB_ACM_NODELAY, IB_ACM_QUERY_SA, both or 0. With IB_ACM_QUERY_SA the source must belong to this host, and errors
 * are derived from the status of the SA: ENODATA if it has no such path, EINVAL and others for other values.
 * Returns 0, or -1 on failure.
 */
int ib_acm_resolve_path(struct ib_acm_client *client, struct ib_acm_path_record *path,
                        uint32_t flags);

/* Frees paths. NULL is ignored. */
void ib_acm_free_paths(struct ib_acm_path *paths);

/*
 * Reads counters.
 *
 * index: 0 for the counters of the service, 1 to 255 for those of an endpoint.
 * counters, count: receive the counters, in host byte order, and their number. enum ib_acm_counter has their indices.
 * Free the counters with ib_acm_free_perf().
 * Returns 0, or -1 on failure.
 */
int ib_acm_query_perf(struct ib_acm_client *client, unsigned int index, uint64_t **counters,
                      size_t *count);

/* Frees counters. NULL is ignored. */
void ib_acm_free_perf(uint64_t *counters);

/*
 * Queries an endpoint of the service.
 *
 * port: 0 to count the endpoints of all ports, or the port number whose endpoints are counted.
 * index: the index of the endpoint, 1 to 255; EINVAL if it does not exist.
 * endpoint: receives the endpoint.
 * addresses, count: receive the names and addresses of the endpoint and their number. Free them with
 * ib_acm_free_addresses().
 * Returns 0, or -1 on failure.
 */
int ib_acm_query_endpoint(struct ib_acm_client *client, unsigned int port, unsigned int index,
                          struct ib_acm_endpoint *endpoint, struct ib_acm_address **addresses,
                          size_t *count);

/* Frees names and addresses. NULL is ignored. */
void ib_acm_free_addresses(struct ib_acm_address *addresses);

/*
 * Returns a description of the last error in the calling thread; an empty string if there was none, never NULL. It is
 * valid until the next failed call in this thread.
 */
const char *ib_acm_error_string(void);

#ifdef __cplusplus
}
#endif

#endif
