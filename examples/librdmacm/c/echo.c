// echo: an echo server in C on librdmacm; main.go above it is the same program on rdmactor. cc echo.c -lrdmacm -libverbs
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>

enum { PORT = 7471, MAX = 4096, DEPTH = 4 };
static const char hello[] = "echo/1";

struct conn {
	struct rdma_cm_id *id;
	struct ibv_mr *mr;
	struct conn *next;
	char buf[DEPTH][MAX];
};

static int ep;
static struct conn *conns;
static volatile sig_atomic_t stop;

static void on_signal(int sig) { (void)sig; stop = 1; }

static void watch(int fd, void *who)
{
	struct epoll_event ev = { .events = EPOLLIN, .data.ptr = who };
	fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
	epoll_ctl(ep, EPOLL_CTL_ADD, fd, &ev);
}

// The order matters: the queue pair, then the memory it used, then the identifier. An unacknowledged event of it would hang here.
static void end(struct conn *c)
{
	for (struct conn **p = &conns; *p; p = &(*p)->next)
		if (*p == c) { *p = c->next; break; }
	if (c->id->qp) {
		epoll_ctl(ep, EPOLL_CTL_DEL, c->id->recv_cq_channel->fd, NULL);
		epoll_ctl(ep, EPOLL_CTL_DEL, c->id->send_cq_channel->fd, NULL);
		rdma_destroy_qp(c->id);
	}
	if (c->mr)
		rdma_dereg_mr(c->mr);
	rdma_destroy_id(c->id);
	free(c);
}

// Receives are posted before rdma_accept: the first message may be faster than ESTABLISHED.
static void request(struct rdma_cm_id *id, const struct rdma_conn_param *req)
{
	struct ibv_qp_init_attr attr = { .qp_type = IBV_QPT_RC, .sq_sig_all = 1,
		.cap = { .max_send_wr = DEPTH, .max_recv_wr = DEPTH, .max_send_sge = 1, .max_recv_sge = 1 } };
	struct conn *c;

	// On InfiniBand private data comes padded with zeros, on iWARP as it was sent.
	if (req->private_data_len < strlen(hello) || memcmp(req->private_data, hello, strlen(hello))) {
		rdma_reject(id, "want echo/1", 11);
		rdma_destroy_id(id);
		return;
	}
	if (!(c = calloc(1, sizeof *c)))
		exit(1);
	c->id = id;
	c->next = conns;
	conns = c;
	id->context = c;
	if (rdma_create_qp(id, NULL, &attr) || !(c->mr = rdma_reg_msgs(id, c->buf, sizeof c->buf)))
		goto fail;
	for (long i = 0; i < DEPTH; i++)
		if (rdma_post_recv(id, (void *)i, c->buf[i], MAX, c->mr))
			goto fail;
	watch(id->recv_cq_channel->fd, c);
	watch(id->send_cq_channel->fd, c);
	if (ibv_req_notify_cq(id->recv_cq, 0) || ibv_req_notify_cq(id->send_cq, 0) || rdma_accept(id, NULL))
		goto fail;
	return;
fail:
	perror("accept");
	end(c);
}

static void cm_event(struct rdma_event_channel *ch)
{
	struct rdma_cm_event *ev;

	while (!rdma_get_cm_event(ch, &ev)) {
		struct rdma_cm_id *id = ev->id;
		enum rdma_cm_event_type type = ev->event;

		if (type == RDMA_CM_EVENT_CONNECT_REQUEST) {
			request(id, &ev->param.conn); // before the acknowledgement: it frees the private data
			rdma_ack_cm_event(ev);
			continue;
		}
		rdma_ack_cm_event(ev); // before rdma_destroy_id, which waits for it
		switch (type) {
		case RDMA_CM_EVENT_DISCONNECTED:
			rdma_disconnect(id); // on InfiniBand the peer waits for the answer
			end(id->context);
			break;
		case RDMA_CM_EVENT_REJECTED:
		case RDMA_CM_EVENT_UNREACHABLE:
		case RDMA_CM_EVENT_CONNECT_ERROR:
		case RDMA_CM_EVENT_DEVICE_REMOVAL: // of a connection; a wildcard listener stays
			end(id->context);
			break;
		default: // ESTABLISHED, TIMEWAIT_EXIT, ADDR_CHANGE
			break;
		}
	}
}

// Arm first, then poll: what comes in between would never be told.
static void arm(struct ibv_comp_channel *ch, struct ibv_cq *cq)
{
	void *ctx;

	while (!ibv_get_cq_event(ch, &cq, &ctx))
		ibv_ack_cq_events(cq, 1);
	ibv_req_notify_cq(cq, 0);
}

static void completions(struct conn *c)
{
	struct ibv_wc wc;

	arm(c->id->recv_cq_channel, c->id->recv_cq);
	arm(c->id->send_cq_channel, c->id->send_cq);
	while (ibv_poll_cq(c->id->recv_cq, 1, &wc) > 0) // those that failed were flushed: DISCONNECTED follows
		if (wc.status == IBV_WC_SUCCESS)
			rdma_post_send(c->id, (void *)wc.wr_id, c->buf[wc.wr_id], wc.byte_len, c->mr, 0);
	while (ibv_poll_cq(c->id->send_cq, 1, &wc) > 0)
		if (wc.status == IBV_WC_SUCCESS)
			rdma_post_recv(c->id, (void *)wc.wr_id, c->buf[wc.wr_id], MAX, c->mr);
}

int main(void)
{
	struct sockaddr_in any = { .sin_family = AF_INET, .sin_port = htons(PORT) };
	struct rdma_event_channel *ch = rdma_create_event_channel();
	struct rdma_cm_id *listener;
	struct epoll_event ev;

	signal(SIGINT, on_signal);
	ep = epoll_create1(EPOLL_CLOEXEC);
	if (!ch || rdma_create_id(ch, &listener, NULL, RDMA_PS_TCP) || rdma_bind_addr(listener, (struct sockaddr *)&any) ||
	    rdma_listen(listener, 128)) {
		perror("listen");
		return 1;
	}
	watch(ch->fd, NULL);
	while (!stop || conns) {
		if (epoll_wait(ep, &ev, 1, -1) == 1) {
			if (ev.data.ptr)
				completions(ev.data.ptr);
			else
				cm_event(ch);
		} else if (errno == EINTR && stop && listener) { // Ctrl-C: nothing new, then goodbye to everybody
			rdma_destroy_id(listener);
			listener = NULL;
			for (struct conn *c = conns; c; c = c->next)
				rdma_disconnect(c->id); // DISCONNECTED follows
		}
	}
	rdma_destroy_event_channel(ch);
	return 0;
}
