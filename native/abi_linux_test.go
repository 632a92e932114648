//go:build linux && (amd64 || arm64)

package native

import (
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/rdmactor/rdmactor/internal/hca"
	"github.com/rdmactor/rdmactor/verbs"
)

// oracle contains the values of infiniband/verbs.h. The test with the tag abi compares it with the
// headers.
const oracle = "testdata/abi.json"

// structs are the C structs with the fields that this package uses, in the mirrors' order.
var structs = []struct {
	name   string
	fields string // of C, for each field of the mirror that is not padding
	mirror any
}{
	{"ibv_device_attr", "fw_ver node_guid sys_image_guid max_mr_size page_size_cap vendor_id vendor_part_id hw_ver max_qp max_qp_wr " +
		"device_cap_flags max_sge max_sge_rd max_cq max_cqe max_mr max_pd max_qp_rd_atom max_ee_rd_atom max_res_rd_atom " +
		"max_qp_init_rd_atom max_ee_init_rd_atom atomic_cap max_ee max_rdd max_mw max_raw_ipv6_qp max_raw_ethy_qp max_mcast_grp " +
		"max_mcast_qp_attach max_total_mcast_qp_attach max_ah max_fmr max_map_per_fmr max_srq max_srq_wr max_srq_sge max_pkeys " +
		"local_ca_ack_delay phys_port_cnt", deviceAttr{}},
	{"ibv_port_attr", "state max_mtu active_mtu gid_tbl_len port_cap_flags max_msg_sz bad_pkey_cntr qkey_viol_cntr pkey_tbl_len lid " +
		"sm_lid lmc max_vl_num sm_sl subnet_timeout init_type_reply active_width active_speed phys_state link_layer flags", portAttr{}},
	{"ibv_sge", "addr length lkey", hca.Place{}},
	{"ibv_send_wr", "wr_id next sg_list num_sge opcode send_flags imm_data wr", sendWR{}},
	{"ibv_recv_wr", "wr_id next sg_list num_sge", recvWR{}},
	{"ibv_wc", "wr_id status opcode vendor_err byte_len imm_data qp_num src_qp wc_flags pkey_index slid sl dlid_path_bits", hca.WC{}},
	{"ibv_qp_cap", "max_send_wr max_recv_wr max_send_sge max_recv_sge max_inline_data", qpCap{}},
	{"ibv_qp_init_attr", "qp_context send_cq recv_cq srq cap qp_type sq_sig_all", qpInitAttr{}},
	{"ibv_srq_attr", "max_wr max_sge srq_limit", srqAttr{}},
	{"ibv_srq_init_attr", "srq_context attr", srqInitAttr{}},
	{"ibv_global_route", "dgid flow_label sgid_index hop_limit traffic_class", hca.GlobalRoute{}},
	{"ibv_ah_attr", "grh dlid sl src_path_bits static_rate is_global port_num", hca.AHAttr{}},
	{"ibv_qp_attr", "qp_state cur_qp_state path_mtu path_mig_state qkey rq_psn sq_psn dest_qp_num qp_access_flags cap ah_attr " +
		"alt_ah_attr pkey_index alt_pkey_index en_sqd_async_notify sq_draining max_rd_atomic max_dest_rd_atomic min_rnr_timer port_num " +
		"timeout retry_cnt rnr_retry alt_port_num alt_timeout rate_limit", qpAttr{}},
	{"ibv_async_event", "element event_type", hca.AsyncEvent{}},
}

// grown are the structs whose mirrors are larger, for versions of the library with more fields.
var grown = map[string]bool{"ibv_port_attr": true}

// places returns offsets in the library's memory and in unions, and values of enums.
func places() map[string]int64 {
	ctx := func(f string) string { return "offsetof(struct ibv_context, " + f + ")" }
	wr := func(f string) string {
		return "offsetof(struct ibv_send_wr, wr." + f + ") - offsetof(struct ibv_send_wr, wr)"
	}
	off := func(mirror any, field string) int64 {
		f, ok := reflect.TypeOf(mirror).FieldByName(field)
		if !ok {
			panic(field)
		}
		return int64(f.Offset)
	}
	return map[string]int64{
		"offsetof(struct ibv_device, node_type)": deviceNodeType, "offsetof(struct ibv_device, name)": deviceName,
		"IBV_SYSFS_NAME_MAX": deviceNameLen,
		ctx("device"):        contextDevice, ctx("ops.poll_cq"): contextPollCQ, ctx("ops.req_notify_cq"): contextReqNotify,
		ctx("ops.post_srq_recv"): contextPostSRQ, ctx("ops.post_send"): contextPostSend, ctx("ops.post_recv"): contextPostRecv,
		ctx("cmd_fd"): contextCmdFD, ctx("async_fd"): contextAsyncFD,
		"offsetof(struct ibv_pd, context)": pdContext,
		"offsetof(struct ibv_mr, addr)":    mrAddr, "offsetof(struct ibv_mr, length)": mrLength,
		"offsetof(struct ibv_mr, lkey)": mrLKey, "offsetof(struct ibv_mr, rkey)": mrRKey,
		"offsetof(struct ibv_comp_channel, context)": channelContext, "offsetof(struct ibv_comp_channel, fd)": channelFD,
		"offsetof(struct ibv_cq, cq_context)": cqContext, "offsetof(struct ibv_cq, cqe)": cqEntries,
		"offsetof(struct ibv_srq, srq_context)": srqContext, "offsetof(struct ibv_srq, pd)": srqPD,
		"offsetof(struct ibv_qp, qp_context)": qpContext, "offsetof(struct ibv_qp, pd)": qpPD,
		"offsetof(struct ibv_qp, handle)": qpHandle, "offsetof(struct ibv_qp, qp_num)": qpNum,
		wr("rdma.remote_addr"): off(hca.RDMAWR{}, "RemoteAddr"), wr("rdma.rkey"): off(hca.RDMAWR{}, "RKey"),
		wr("atomic.remote_addr"): off(hca.AtomicWR{}, "RemoteAddr"), wr("atomic.compare_add"): off(hca.AtomicWR{}, "CompareAdd"),
		wr("atomic.swap"): off(hca.AtomicWR{}, "Swap"), wr("atomic.rkey"): off(hca.AtomicWR{}, "RKey"),
		wr("ud.ah"): off(udWR{}, "AH"), wr("ud.remote_qpn"): off(udWR{}, "RemoteQPN"), wr("ud.remote_qkey"): off(udWR{}, "RemoteQKey"),
		"IBV_NODE_RNIC": nodeRNIC, "IBV_MTU_4096": hca.MTU4096, "IBV_QPS_RTS": qpStateRTS, "IBV_SRQ_LIMIT": srqLimit,
		"IBV_WR_RDMA_WRITE": hca.WRWrite, "IBV_WR_SEND": hca.WRSend, "IBV_WR_RDMA_WRITE_WITH_IMM": hca.WRWriteWithImm,
		"IBV_WC_RECV_RDMA_WITH_IMM": hca.WCRecvWrite, "IBV_WR_SEND_WITH_IMM": hca.WRSendWithImm, "IBV_WR_RDMA_READ": hca.WRRead,
		"IBV_WR_ATOMIC_CMP_AND_SWP": hca.WRCmpSwap, "IBV_WR_ATOMIC_FETCH_AND_ADD": hca.WRFetchAdd,
		"IBV_SEND_FENCE": hca.SendFence, "IBV_SEND_SIGNALED": hca.SendSignaled, "IBV_SEND_SOLICITED": hca.SendSolicited, "IBV_SEND_INLINE": hca.SendInline,
		"IBV_WC_GRH": hca.WCGRH, "IBV_WC_WITH_IMM": hca.WCWithImm, "IBV_WC_WITH_INV": hca.WCWithInv,
		"IBV_WC_GENERAL_ERR":  int64(verbs.StatusGeneral),
		"IBV_WC_WR_FLUSH_ERR": int64(verbs.StatusFlushed),
		"IBV_EVENT_CQ_ERR":    hca.EventCQError, "IBV_EVENT_QP_FATAL": hca.EventQPFatal, "IBV_EVENT_PATH_MIG_ERR": hca.EventPathMigErr,
		"IBV_EVENT_PORT_ACTIVE": hca.EventPortActive, "IBV_EVENT_SM_CHANGE": hca.EventSMChange,
		"IBV_EVENT_CLIENT_REREGISTER": hca.EventReregister, "IBV_EVENT_GID_CHANGE": hca.EventGIDChange,
		"IBV_EVENT_SRQ_ERR": hca.EventSRQError, "IBV_EVENT_SRQ_LIMIT_REACHED": hca.EventSRQLimit, "IBV_EVENT_QP_LAST_WQE_REACHED": hca.EventLastWQE,
		"IBV_ACCESS_LOCAL_WRITE": int64(verbs.LocalWrite), "IBV_ACCESS_REMOTE_WRITE": int64(verbs.RemoteWrite),
		"IBV_ACCESS_REMOTE_READ": int64(verbs.RemoteRead), "IBV_ACCESS_REMOTE_ATOMIC": int64(verbs.RemoteAtomic),
		"IBV_QPT_RC": int64(verbs.RC), "IBV_QPT_UD": int64(verbs.UD), "IBV_QP_DEST_QPN": int64(verbs.QPAttrDestQPN),
		"IBV_QP_STATE": int64(verbs.QPAttrState), "IBV_QPS_ERR": int64(verbs.QPError),
	}
}

// mirrored returns the mirrors' values, by C expression.
func mirrored(t *testing.T) map[string]int64 {
	t.Helper()
	all := places()
	for _, s := range structs {
		typ := reflect.TypeOf(s.mirror)
		if !grown[s.name] {
			all[fmt.Sprintf("sizeof(struct %s)", s.name)] = int64(typ.Size())
		}
		names := strings.Fields(s.fields)
		for i := range typ.NumField() {
			f := typ.Field(i)
			// padding in C
			if f.Name == "_" || f.Name == "Reserved" || s.name == "ibv_wc" && f.Name == "PortNum" {
				continue
			}
			if len(names) == 0 {
				t.Fatalf("%s has more fields than %s", typ, s.name)
			}
			all[fmt.Sprintf("offsetof(struct %s, %s)", s.name, names[0])] = int64(f.Offset)
			all[fmt.Sprintf("sizeof(((struct %s *)0)->%s)", s.name, names[0])] = int64(f.Type.Size())
			names = names[1:]
		}
		if len(names) > 0 {
			t.Errorf("%s lacks %v", typ, names)
		}
	}
	return all
}

// TestMirrors compares the mirrors with the oracle.
func TestMirrors(t *testing.T) {
	text, err := os.ReadFile(oracle)
	if err != nil {
		t.Fatal(err)
	}
	var want map[string]int64
	if err := json.Unmarshal(text, &want); err != nil {
		t.Fatal(err)
	}
	got := mirrored(t)
	for e, n := range got {
		if w, ok := want[e]; !ok || w != n {
			t.Errorf("%s is %d here and %d (%v) in the oracle", e, n, w, ok)
		}
	}
	if len(got) != len(want) {
		t.Errorf("%d answers, and %d in the oracle", len(got), len(want))
	}
}
