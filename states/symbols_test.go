package states

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"
)

// kernelEvents is enum rdma_cm_event_type, in order.
const kernelEvents = `ADDR_RESOLVED ADDR_ERROR ROUTE_RESOLVED ROUTE_ERROR CONNECT_REQUEST CONNECT_RESPONSE CONNECT_ERROR
	UNREACHABLE REJECTED ESTABLISHED DISCONNECTED DEVICE_REMOVAL MULTICAST_JOIN MULTICAST_ERROR ADDR_CHANGE TIMEWAIT_EXIT
	ADDRINFO_RESOLVED ADDRINFO_ERROR USER INTERNAL`

// TestEveryEventHasAKind: names are mechanical, numbers are the uABI's, and every event does
// something somewhere.
func TestEveryEventHasAKind(t *testing.T) {
	names := strings.Fields(kernelEvents)
	if len(names) != NumKernelKinds {
		t.Fatalf("%d names, %d kinds", len(names), NumKernelKinds)
	}
	for i, name := range names {
		k := Kind(i)
		if k.C() != "RDMA_CM_EVENT_"+name {
			t.Errorf("kind %d is %s, the kernel's is %s", i, k.C(), name)
		}
		if got, want := strings.ToLower(k.String()), strings.ToLower(strings.ReplaceAll(name, "_", "")); got != want {
			t.Errorf("%s is called %v", name, k)
		}
		allowed := false
		cells(func(f Flavor, s State, in Input) {
			_, v := Step(f, s, in)
			allowed = allowed || in == Occurred(k) && v == Allow
		})
		if !allowed {
			t.Errorf("%v is ignored everywhere", k)
		}
	}
}

// call is a symbol's row in docs/librdmacm.json, as far as it concerns the state machine: the Ops
// it asks, or why it asks none.
type call struct {
	Symbol string
	Ops    []string
	None   string
}

func calls(t *testing.T) map[string]call {
	t.Helper()
	data, err := os.ReadFile("../docs/librdmacm.json")
	if err != nil {
		t.Fatal(err)
	}
	var table struct{ Symbols []call }
	if err := json.Unmarshal(data, &table); err != nil {
		t.Fatal(err)
	}
	all := make(map[string]call)
	for _, c := range table.Symbols {
		if _, twice := all[c.Symbol]; twice {
			t.Errorf("%s is there twice", c.Symbol)
		}
		all[c.Symbol] = c
	}
	return all
}

// exported has the symbols of librdmacm.so.1 (RDMACM_1.0 to 1.5) except rsocket, and the inline
// functions of its headers.
const exported = `
	rdma_create_event_channel rdma_destroy_event_channel rdma_create_id rdma_destroy_id rdma_bind_addr rdma_resolve_addr
	rdma_resolve_route rdma_connect rdma_listen rdma_get_request rdma_accept rdma_reject rdma_reject_ece rdma_establish
	rdma_disconnect rdma_notify rdma_get_cm_event rdma_ack_cm_event rdma_join_multicast rdma_join_multicast_ex
	rdma_leave_multicast rdma_migrate_id rdma_set_option rdma_create_ep rdma_destroy_ep rdma_resolve_addrinfo
	rdma_query_addrinfo rdma_write_cm_event rdma_set_local_ece rdma_get_remote_ece
	rdma_create_qp rdma_create_qp_ex rdma_destroy_qp rdma_create_srq rdma_create_srq_ex rdma_destroy_srq rdma_init_qp_attr
	rdma_seterrno rdma_reg_msgs rdma_reg_read rdma_reg_write rdma_dereg_mr rdma_post_recvv rdma_post_sendv rdma_post_readv
	rdma_post_writev rdma_post_recv rdma_post_send rdma_post_read rdma_post_write rdma_post_ud_send rdma_get_send_comp
	rdma_get_recv_comp
	rdma_getaddrinfo rdma_freeaddrinfo rdma_get_devices rdma_free_devices rdma_get_src_port rdma_get_dst_port rdma_event_str
	rdma_get_local_addr rdma_get_peer_addr`

// TestEveryCallHasAnOp walks librdmacm's symbols (rsocket apart, which is a library above this
// one).
func TestEveryCallHasAnOp(t *testing.T) {
	symbols, calls := strings.Fields(exported), calls(t)
	asked := map[Op]bool{}
	for _, symbol := range symbols {
		c, ok := calls[symbol]
		if !ok || (len(c.Ops) == 0) == (c.None == "") {
			t.Errorf("%s: want Ops or a reason to have none", symbol)
		}
		for _, name := range c.Ops {
			op := opNamed(name)
			if int(op) >= numOps {
				t.Errorf("%s: there is no Op %s", symbol, name)
				continue
			}
			asked[op] = true
			if !slices.Contains(symbols, op.C()) || !slices.Contains(calls[op.C()].Ops, name) {
				t.Errorf("%v calls itself %s in C", op, op.C())
			}
		}
	}
	for symbol := range calls {
		if !slices.Contains(symbols, symbol) {
			t.Errorf("librdmacm has no %s", symbol)
		}
	}
	for op := range Op(numOps) {
		if !asked[op] {
			t.Errorf("%v is no call of librdmacm", op)
		}
	}
}

// opNamed returns the command of a name; numOps: none has it.
func opNamed(name string) Op {
	for op := range Op(numOps) {
		if op.String() == name {
			return op
		}
	}
	return Op(numOps)
}
