/*
 * Asks librdmacm's rdma_getaddrinfo for a path, and prints all that it returns.
 * usage: rdma-getaddrinfo [-b] [-n] [-s SOURCE] DESTINATION [SERVICE]
 *   -b    addresses of InfiniBand: DESTINATION and SOURCE are GIDs
 *   -n    numbers only, for which the service does not ask others
 * A path is printed as ib_acme prints one. The status is 0 when the function succeeds, with a path or without.
 */
#include <arpa/inet.h>
#include <endian.h>
#include <infiniband/ib.h>
#include <infiniband/sa.h>
#include <rdma/rdma_cma.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char *gid(const void *bytes)
{
	static char text[INET6_ADDRSTRLEN];
	return inet_ntop(AF_INET6, bytes, text, sizeof text);
}

static void print_address(const char *what, const struct sockaddr *address, socklen_t length)
{
	char text[INET6_ADDRSTRLEN] = "?";

	if (!length)
		return;
	switch (address->sa_family) {
	case AF_INET: {
		const struct sockaddr_in *v4 = (const void *)address;
		inet_ntop(AF_INET, &v4->sin_addr, text, sizeof text);
		printf("%s: ipv4 %s port %u\n", what, text, ntohs(v4->sin_port));
		break;
	}
	case AF_INET6: {
		const struct sockaddr_in6 *v6 = (const void *)address;
		printf("%s: ipv6 %s port %u\n", what, gid(&v6->sin6_addr), ntohs(v6->sin6_port));
		break;
	}
	case AF_IB: {
		const struct sockaddr_ib *ib = (const void *)address;
		printf("%s: ib %s pkey 0x%x service 0x%llx\n", what, gid(&ib->sib_addr), be16toh(ib->sib_pkey),
		       (unsigned long long)be64toh(ib->sib_sid));
		break;
	}
	default:
		printf("%s: family %u\n", what, address->sa_family);
	}
}

static void print_path(const struct ibv_path_data *data)
{
	const struct ibv_path_record *path = &data->path;
	uint32_t flow = be32toh(path->flowlabel_hoplimit);

	printf("flags: 0x%x\n", data->flags);
	printf("Path information\n");
	printf("  dgid: %s\n", gid(&path->dgid));
	printf("  sgid: %s\n", gid(&path->sgid));
	printf("  dlid: %u\n", be16toh(path->dlid));
	printf("  slid: %u\n", be16toh(path->slid));
	printf("  flow label: 0x%x\n", flow >> 8 & 0xfffff);
	printf("  hop limit: %u\n", flow & 0xff);
	printf("  tclass: %u\n", path->tclass);
	printf("  reversible: %u\n", path->reversible_numpath >> 7);
	printf("  pkey: 0x%x\n", be16toh(path->pkey));
	printf("  sl: %u\n", be16toh(path->qosclass_sl) & 0xf);
	printf("  mtu: %u\n", path->mtu & 0x3f);
	printf("  rate: %u\n", path->rate & 0x3f);
	printf("  packet lifetime: %u\n", path->packetlifetime & 0x3f);
}

/* Returns the address that is asked from. */
static int find_source(const char *source, struct rdma_addrinfo *hints, struct rdma_addrinfo **found)
{
	struct rdma_addrinfo passive = *hints;

	passive.ai_flags |= RAI_PASSIVE;
	if (rdma_getaddrinfo(source, NULL, &passive, found))
		return -1;
	hints->ai_src_addr = (*found)->ai_src_addr;
	hints->ai_src_len = (*found)->ai_src_len;
	return 0;
}

int main(int count, char **words)
{
	struct rdma_addrinfo hints = { .ai_port_space = RDMA_PS_TCP, .ai_qp_type = IBV_QPT_RC };
	struct rdma_addrinfo *found, *from = NULL;
	const char *source = NULL;
	int option;

	while ((option = getopt(count, words, "bns:")) != -1) {
		switch (option) {
		case 'b':
			hints.ai_flags |= RAI_NUMERICHOST | RAI_FAMILY;
			hints.ai_family = AF_IB;
			break;
		case 'n':
			hints.ai_flags |= RAI_NUMERICHOST;
			break;
		case 's':
			source = optarg;
			break;
		default:
			return 2;
		}
	}
	if (optind == count || (source && find_source(source, &hints, &from)) ||
	    rdma_getaddrinfo(words[optind], words[optind + 1], &hints, &found)) {
		perror("rdma_getaddrinfo");
		return 1;
	}
	for (const struct rdma_addrinfo *one = found; one; one = one->ai_next) {
		const struct ibv_path_data *paths = one->ai_route;

		printf("result: family %s, route of %zu bytes, connect of %zu bytes\n",
		       one->ai_family == AF_IB ? "ib" : one->ai_family == AF_INET ? "ipv4" : "ipv6",
		       (size_t)one->ai_route_len, (size_t)one->ai_connect_len);
		print_address("source", one->ai_src_addr, one->ai_src_len);
		print_address("destination", one->ai_dst_addr, one->ai_dst_len);
		for (size_t place = 0; place < one->ai_route_len / sizeof *paths; place++)
			print_path(&paths[place]);
	}
	rdma_freeaddrinfo(found);
	if (from)
		rdma_freeaddrinfo(from);
	return 0;
}
