// writeimm -b ADDR -p PORT [-S SIZE] or writeimm -s ADDR -p PORT [-S SIZE]: the other side of rdmapeer's
// writeimm, over librdmacm and libibverbs. Client and server write SIZE bytes into each other's memory
// with immediate data, the client first. The keys are private data: address, key, size, big endian.
#include <arpa/inet.h>
#include <endian.h>
#include <netdb.h>
#include <rdma/rdma_cma.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FROM_CLIENT = 0xdeadbeef, FROM_SERVER = 0x01020304 };

struct key {
	uint64_t addr;
	uint32_t rkey, size;
} __attribute__((packed));

static struct rdma_event_channel *events;
static struct ibv_mr *near, *far; // what is written from, and what the peer writes to
static struct ibv_cq *cq;
static uint32_t size = 100;

static void fail(const char *what)
{
	perror(what);
	printf("writeimm: end -1\n");
	exit(255);
}

static void want(int ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "wrong: %s\n", what);
	printf("writeimm: end -1\n");
	exit(255);
}

// next waits for an event, and copies the peer's key out of it.
static struct rdma_cm_id *next(enum rdma_cm_event_type type, struct key *key)
{
	struct rdma_cm_event *e;
	struct rdma_cm_id *id;

	if (rdma_get_cm_event(events, &e))
		fail("rdma_get_cm_event");
	if (e->event != type)
		fprintf(stderr, "%s instead of %s\n", rdma_event_str(e->event), rdma_event_str(type));
	want(e->event == type, "the event");
	if (key) {
		want(e->param.conn.private_data_len >= sizeof *key, "the private data's length");
		memcpy(key, e->param.conn.private_data, sizeof *key);
	}
	id = e->id;
	rdma_ack_cm_event(e);
	return id;
}

// prepare makes the queue pair, and posts a receive without memory.
static void prepare(struct rdma_cm_id *id, struct key *own)
{
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RC, .cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 } };
	struct ibv_recv_wr recv = { 0 }, *bad;
	struct ibv_pd *pd = ibv_alloc_pd(id->verbs);

	if (!pd || !(cq = ibv_create_cq(id->verbs, 4, NULL, NULL, 0)))
		fail("ibv_create_cq");
	init.send_cq = init.recv_cq = cq;
	if (rdma_create_qp(id, pd, &init))
		fail("rdma_create_qp");
	near = ibv_reg_mr(pd, calloc(1, size), size, IBV_ACCESS_LOCAL_WRITE);
	far = ibv_reg_mr(pd, calloc(1, size), size, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	if (!near || !far)
		fail("ibv_reg_mr");
	if (ibv_post_recv(id->qp, &recv, &bad))
		fail("ibv_post_recv");
	*own = (struct key){ htobe64((uintptr_t)far->addr), htonl(far->rkey), htonl(size) };
}

static struct ibv_wc poll_one(void)
{
	struct ibv_wc wc;
	int n;

	while (!(n = ibv_poll_cq(cq, 1, &wc)))
		usleep(1000);
	if (n < 0)
		fail("ibv_poll_cq");
	if (wc.status)
		fprintf(stderr, "%s\n", ibv_wc_status_str(wc.status));
	want(!wc.status, "the completion's status");
	return wc;
}

// write_it writes with immediate data. Byte i is imm + i.
static void write_it(struct rdma_cm_id *id, const struct key *to, uint32_t imm)
{
	struct ibv_sge sge = { (uintptr_t)near->addr, size, near->lkey };
	struct ibv_send_wr wr = { .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE_WITH_IMM, .send_flags = IBV_SEND_SIGNALED,
				  .imm_data = htonl(imm) }, *bad;

	want(ntohl(to->size) == size, "the size of the peer's memory");
	for (uint32_t i = 0; i < size; i++)
		((uint8_t *)near->addr)[i] = imm + i;
	wr.wr.rdma.remote_addr = be64toh(to->addr);
	wr.wr.rdma.rkey = ntohl(to->rkey);
	if (ibv_post_send(id->qp, &wr, &bad))
		fail("ibv_post_send");
	want(poll_one().opcode == IBV_WC_RDMA_WRITE, "the Write's opcode");
}

static void written(uint32_t imm)
{
	struct ibv_wc wc = poll_one();

	want(wc.opcode == IBV_WC_RECV_RDMA_WITH_IMM, "the receive's opcode");
	want(wc.wc_flags & IBV_WC_WITH_IMM && ntohl(wc.imm_data) == imm, "the immediate data");
	want(wc.byte_len == size, "the length");
	for (uint32_t i = 0; i < size; i++)
		want(((uint8_t *)far->addr)[i] == (uint8_t)(imm + i), "the bytes");
}

static void serve(struct addrinfo *at)
{
	struct rdma_conn_param param = { .retry_count = 7, .rnr_retry_count = 7 };
	struct rdma_cm_id *listener, *id;
	struct key own, peer;

	if (rdma_create_id(events, &listener, NULL, RDMA_PS_TCP) || rdma_bind_addr(listener, at->ai_addr) || rdma_listen(listener, 1))
		fail("rdma_listen");
	id = next(RDMA_CM_EVENT_CONNECT_REQUEST, &peer);
	prepare(id, &own);
	param.private_data = &own;
	param.private_data_len = sizeof own;
	if (rdma_accept(id, &param))
		fail("rdma_accept");
	next(RDMA_CM_EVENT_ESTABLISHED, NULL);
	written((uint32_t)FROM_CLIENT);
	write_it(id, &peer, FROM_SERVER);
	next(RDMA_CM_EVENT_DISCONNECTED, NULL);
	rdma_disconnect(id);
}

static void dial(struct addrinfo *to)
{
	struct rdma_conn_param param = { .retry_count = 7, .rnr_retry_count = 7 };
	struct rdma_cm_id *id;
	struct key own, peer;

	if (rdma_create_id(events, &id, NULL, RDMA_PS_TCP) || rdma_resolve_addr(id, NULL, to->ai_addr, 5000))
		fail("rdma_resolve_addr");
	next(RDMA_CM_EVENT_ADDR_RESOLVED, NULL);
	if (rdma_resolve_route(id, 5000))
		fail("rdma_resolve_route");
	next(RDMA_CM_EVENT_ROUTE_RESOLVED, NULL);
	prepare(id, &own);
	param.private_data = &own;
	param.private_data_len = sizeof own;
	if (rdma_connect(id, &param))
		fail("rdma_connect");
	next(RDMA_CM_EVENT_ESTABLISHED, &peer);
	write_it(id, &peer, (uint32_t)FROM_CLIENT);
	written(FROM_SERVER);
	rdma_disconnect(id);
	next(RDMA_CM_EVENT_DISCONNECTED, NULL);
}

int main(int argc, char **argv)
{
	struct addrinfo *at, hints = { .ai_family = AF_INET, .ai_socktype = SOCK_STREAM };
	const char *addr = NULL, *port = "7471";
	int opt, server = 0;

	while ((opt = getopt(argc, argv, "b:s:p:S:")) != -1)
		switch (opt) {
		case 'b':
			server = 1; // fall through
		case 's':
			addr = optarg;
			break;
		case 'p':
			port = optarg;
			break;
		case 'S':
			size = atoi(optarg);
			break;
		default:
			return 1;
		}
	if (getaddrinfo(addr, port, &hints, &at) || !(events = rdma_create_event_channel()))
		fail("rdma_create_event_channel");
	if (server)
		serve(at);
	else
		dial(at);
	printf("writeimm: end 0\n");
	return 0;
}
