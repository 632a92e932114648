package uverbs

import (
	"encoding/json"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/rdmactor/rdmactor/internal/hca"
)

// layout is a struct of the kernel's headers and its mirror here. fields are the C names of the
// mirror's fields, in order. Further fields of the mirror belong to a driver and follow the end of
// the C struct.
type layout struct {
	c      string
	fields string
	mirror any
}

// layouts are all of them.
var layouts = []layout{
	{"ib_uverbs_cmd_hdr", "command in_words out_words", cmdHdr{}},
	{"ib_uverbs_get_context", "response", ask{}},
	{"ib_uverbs_get_context_resp", "async_fd num_comp_vectors", getContextResp{}},
	{"ib_uverbs_query_device", "response", ask{}},
	{"ib_uverbs_query_device_resp", "fw_ver node_guid sys_image_guid max_mr_size page_size_cap vendor_id vendor_part_id hw_ver max_qp " +
		"max_qp_wr device_cap_flags max_sge max_sge_rd max_cq max_cqe max_mr max_pd max_qp_rd_atom max_ee_rd_atom max_res_rd_atom " +
		"max_qp_init_rd_atom max_ee_init_rd_atom atomic_cap max_ee max_rdd max_mw max_raw_ipv6_qp max_raw_ethy_qp max_mcast_grp " +
		"max_mcast_qp_attach max_total_mcast_qp_attach max_ah max_fmr max_map_per_fmr max_srq max_srq_wr max_srq_sge max_pkeys " +
		"local_ca_ack_delay phys_port_cnt reserved", queryDeviceResp{}},
	{"ib_uverbs_query_port", "response port_num reserved", queryPort{}},
	{"ib_uverbs_query_port_resp", "port_cap_flags max_msg_sz bad_pkey_cntr qkey_viol_cntr gid_tbl_len pkey_tbl_len lid sm_lid state " +
		"max_mtu active_mtu lmc max_vl_num sm_sl subnet_timeout init_type_reply active_width active_speed phys_state link_layer flags " +
		"reserved", queryPortResp{}},
	{"ib_uverbs_alloc_pd", "response", ask{}},
	{"ib_uverbs_alloc_pd_resp", "pd_handle", allocPDResp{}},
	{"ib_uverbs_dealloc_pd", "pd_handle", giveBack{}},
	{"ib_uverbs_reg_mr", "response start length hca_va pd_handle access_flags", regMR{}},
	{"ib_uverbs_reg_mr_resp", "mr_handle lkey rkey", regMRResp{}},
	{"ib_uverbs_dereg_mr", "mr_handle", giveBack{}},
	{"ib_uverbs_create_comp_channel", "response", ask{}},
	{"ib_uverbs_create_comp_channel_resp", "fd", createCompChannelResp{}},
	{"ib_uverbs_create_cq", "response user_handle cqe comp_vector comp_channel reserved", createCQ{}},
	{"ib_uverbs_create_cq_resp", "cq_handle cqe", createCQResp{}},
	{"ib_uverbs_req_notify_cq", "cq_handle solicited_only", reqNotifyCQ{}},
	{"ib_uverbs_destroy_cq", "response cq_handle reserved", destroy{}},
	{"ib_uverbs_destroy_cq_resp", "comp_events_reported async_events_reported", destroyCQResp{}},
	{"ib_uverbs_create_qp", "response user_handle pd_handle send_cq_handle recv_cq_handle srq_handle max_send_wr max_recv_wr " +
		"max_send_sge max_recv_sge max_inline_data sq_sig_all qp_type is_srq reserved", createQP{}},
	{"ib_uverbs_create_qp_resp", "qp_handle qpn max_send_wr max_recv_wr max_send_sge max_recv_sge max_inline_data reserved", createQPResp{}},
	{"ib_uverbs_qp_dest", "dgid flow_label dlid reserved sgid_index hop_limit traffic_class sl src_path_bits static_rate is_global " +
		"port_num", qpDest{}},
	{"ib_uverbs_modify_qp", "dest alt_dest qp_handle attr_mask qkey rq_psn sq_psn dest_qp_num qp_access_flags pkey_index alt_pkey_index " +
		"qp_state cur_qp_state path_mtu path_mig_state en_sqd_async_notify max_rd_atomic max_dest_rd_atomic min_rnr_timer port_num " +
		"timeout retry_cnt rnr_retry alt_port_num alt_timeout reserved", modifyQP{}},
	{"ib_uverbs_destroy_qp", "response qp_handle reserved", destroy{}},
	{"ib_uverbs_destroy_qp_resp", "events_reported", destroyed{}},
	{"ib_uverbs_post_send", "response qp_handle wr_count sge_count wqe_size", postSend{}},
	{"ib_uverbs_post_send_resp", "bad_wr", postSendResp{}},
	{"ib_uverbs_send_wr", "", [sendWRSize]byte{}},
	{"ib_uverbs_global_route", "dgid flow_label sgid_index hop_limit traffic_class reserved", hca.GlobalRoute{}},
	{"ib_uverbs_ah_attr", "grh dlid sl src_path_bits static_rate is_global port_num reserved", hca.AHAttr{}},
	{"ib_uverbs_create_ah", "response user_handle pd_handle reserved attr", createAH{}},
	{"ib_uverbs_create_ah_resp", "ah_handle", createAHResp{}},
	{"ib_uverbs_destroy_ah", "ah_handle", giveBack{}},
	{"ib_uverbs_attach_mcast", "gid qp_handle mlid reserved", attachMcast{}},
	{"ib_uverbs_detach_mcast", "gid qp_handle mlid reserved", attachMcast{}},
	{"ib_uverbs_create_srq", "response user_handle pd_handle max_wr max_sge srq_limit", createSRQ{}},
	{"ib_uverbs_create_srq_resp", "srq_handle max_wr max_sge srqn", createSRQResp{}},
	{"ib_uverbs_modify_srq", "srq_handle attr_mask max_wr srq_limit", modifySRQ{}},
	{"ib_uverbs_destroy_srq", "response srq_handle reserved", destroy{}},
	{"ib_uverbs_destroy_srq_resp", "events_reported", destroyed{}},
	{"ib_uverbs_async_event_desc", "element event_type reserved", hca.AsyncEvent{}},
	{"ib_uverbs_comp_event_desc", "cq_handle", compEventDesc{}},
	{"ib_uverbs_wc", "wr_id status opcode vendor_err byte_len ex qp_num src_qp wc_flags pkey_index slid sl dlid_path_bits port_num " +
		"reserved", hca.WC{}},

	{"mminfo", "offset size pad", rxeMinfo{}},
	{"rxe_create_cq_resp", "mi", rxeCreateCQResp{}},
	{"rxe_create_qp_resp", "rq_mi sq_mi", rxeCreateQPResp{}},
	{"rxe_create_srq_resp", "mi srq_num reserved", rxeCreateSRQResp{}},
	{"rxe_modify_srq_cmd", "mmap_info_addr", struct{ A uint64 }{}},
	{"rxe_create_ah_resp", "ah_num reserved", struct{ A, B uint32 }{}},
	{"rxe_queue_buf", "log2_elem_size index_mask pad_1 producer_index pad_2 consumer_index pad_3", rxeQueueBuf{}},
	{"rxe_sge", "addr length lkey", place{}},
	{"rxe_dma_info", "length resid cur_sge num_sge sge_offset reserved", rxeDMAInfo{}},
	{"rxe_send_wr", "wr_id reserved opcode send_flags ex wr", rxeSendWR{}},
	{"rxe_send_wqe", "wr status state iova mask first_psn last_psn ack_length ssn has_rd_atomic dma", rxeSendWQE{}},
	{"rxe_recv_wqe", "wr_id reserved padding dma", rxeRecvWQE{}},

	{"siw_ureq_reg_mr", "stag_key reserved pad", siwRegMR{}},
	{"siw_uresp_create_cq", "cq_id num_cqe cq_key", siwCreateCQResp{}},
	{"siw_uresp_create_qp", "qp_id num_sqe num_rqe pad sq_key rq_key", siwCreateQPResp{}},
	{"siw_uresp_create_srq", "num_rqe pad srq_key", siwCreateSRQResp{}},
	{"siw_sge", "laddr length lkey", place{}},
	{"siw_sqe", "id flags rkey raddr sge", siwSQE{}},
	{"siw_rqe", "id flags unused sge", siwRQE{}},
	{"siw_cqe", "id flags bytes imm_data qp_id", siwCQE{}},
	{"siw_cq_ctrl", "flags pad", siwCQCtrl{}},
}

// members are places inside unions, and inside words that are written in one store: the C
// expression of the offset, and its value here.
var members = map[string]uintptr{
	"offsetof(struct rxe_send_wr, wr.rdma.remote_addr) - offsetof(struct rxe_send_wr, wr)":   offset(hca.RDMAWR{}, "RemoteAddr"),
	"offsetof(struct rxe_send_wr, wr.rdma.rkey) - offsetof(struct rxe_send_wr, wr)":          offset(hca.RDMAWR{}, "RKey"),
	"offsetof(struct rxe_send_wr, wr.atomic.remote_addr) - offsetof(struct rxe_send_wr, wr)": offset(hca.AtomicWR{}, "RemoteAddr"),
	"offsetof(struct rxe_send_wr, wr.atomic.compare_add) - offsetof(struct rxe_send_wr, wr)": offset(hca.AtomicWR{}, "CompareAdd"),
	"offsetof(struct rxe_send_wr, wr.atomic.swap) - offsetof(struct rxe_send_wr, wr)":        offset(hca.AtomicWR{}, "Swap"),
	"offsetof(struct rxe_send_wr, wr.atomic.rkey) - offsetof(struct rxe_send_wr, wr)":        offset(hca.AtomicWR{}, "RKey"),
	"offsetof(struct rxe_send_wr, wr.ud.remote_qpn) - offsetof(struct rxe_send_wr, wr)":      offset(rxeUD{}, "RemoteQPN"),
	"offsetof(struct rxe_send_wr, wr.ud.remote_qkey) - offsetof(struct rxe_send_wr, wr)":     offset(rxeUD{}, "RemoteQKey"),
	"offsetof(struct rxe_send_wr, wr.ud.ah_num) - offsetof(struct rxe_send_wr, wr)":          offset(rxeUD{}, "AHNum"),
	"offsetof(struct rxe_send_wqe, dma.sge)":                                                 reflect.TypeOf(rxeSendWQE{}).Size(),
	"offsetof(struct rxe_send_wqe, dma.inline_data)":                                         reflect.TypeOf(rxeSendWQE{}).Size(),
	"offsetof(struct rxe_recv_wqe, dma.sge)":                                                 offset(rxeRecvWQE{}, "SGE"),
	"offsetof(struct siw_sqe, num_sge) - offsetof(struct siw_sqe, flags)":                    offset(siwHead{}, "NumSGE"),
	"offsetof(struct siw_sqe, opcode) - offsetof(struct siw_sqe, flags)":                     offset(siwHead{}, "Opcode"),
	"offsetof(struct siw_rqe, num_sge) - offsetof(struct siw_rqe, flags)":                    offset(siwHead{}, "NumSGE"),
	"offsetof(struct siw_cqe, opcode) - offsetof(struct siw_cqe, flags)":                     offset(siwCQEHead{}, "Opcode"),
	"offsetof(struct siw_cqe, status) - offsetof(struct siw_cqe, flags)":                     offset(siwCQEHead{}, "Status"),
	"SIW_MAX_SGE": siwMaxSGE, "SIW_MAX_INLINE": siwMaxInline,
	"SIW_WQE_VALID": siwValid, "SIW_WQE_INLINE": siwInline, "SIW_WQE_SIGNALLED": siwSignalled, "SIW_WQE_SOLICITED": siwSolicited,
	"SIW_OP_WRITE": siwOpWrite, "SIW_OP_READ": siwOpRead, "SIW_OP_SEND": siwOpSend,
	"SIW_NOTIFY_ALL": siwNotifyAll, "SIW_NUM_WC_STATUS": uintptr(len(siwStatuses)),
	"IB_USER_VERBS_CMD_GET_CONTEXT": cmdGetContext, "IB_USER_VERBS_CMD_QUERY_DEVICE": cmdQueryDevice,
	"IB_USER_VERBS_CMD_QUERY_PORT": cmdQueryPort, "IB_USER_VERBS_CMD_ALLOC_PD": cmdAllocPD, "IB_USER_VERBS_CMD_DEALLOC_PD": cmdDeallocPD,
	"IB_USER_VERBS_CMD_CREATE_AH": cmdCreateAH, "IB_USER_VERBS_CMD_DESTROY_AH": cmdDestroyAH, "IB_USER_VERBS_CMD_REG_MR": cmdRegMR,
	"IB_USER_VERBS_CMD_DEREG_MR": cmdDeregMR, "IB_USER_VERBS_CMD_CREATE_COMP_CHANNEL": cmdCreateCompChannel,
	"IB_USER_VERBS_CMD_CREATE_CQ": cmdCreateCQ, "IB_USER_VERBS_CMD_DESTROY_CQ": cmdDestroyCQ,
	"IB_USER_VERBS_CMD_REQ_NOTIFY_CQ": cmdReqNotifyCQ, "IB_USER_VERBS_CMD_CREATE_QP": cmdCreateQP,
	"IB_USER_VERBS_CMD_MODIFY_QP": cmdModifyQP, "IB_USER_VERBS_CMD_DESTROY_QP": cmdDestroyQP, "IB_USER_VERBS_CMD_POST_SEND": cmdPostSend,
	"IB_USER_VERBS_CMD_ATTACH_MCAST": cmdAttachMcast, "IB_USER_VERBS_CMD_DETACH_MCAST": cmdDetachMcast,
	"IB_USER_VERBS_CMD_CREATE_SRQ": cmdCreateSRQ, "IB_USER_VERBS_CMD_MODIFY_SRQ": cmdModifySRQ,
	"IB_USER_VERBS_CMD_DESTROY_SRQ": cmdDestroySRQ, "IB_UVERBS_WR_RDMA_WRITE": hca.WRWrite, "IB_UVERBS_WR_SEND": hca.WRSend,
	"IB_UVERBS_WR_RDMA_WRITE_WITH_IMM": hca.WRWriteWithImm,
	"IB_UVERBS_WR_SEND_WITH_IMM":       hca.WRSendWithImm, "IB_UVERBS_WR_RDMA_READ": hca.WRRead,
}

// renamed are the fields that have another name here, by C name. All other names differ only in
// case and underscores.
var renamed = map[string]string{
	"flags": "head", "laddr": "addr", "imm_data": "imm", "rq_mi": "rq", "sq_mi": "sq", "mmap_info_addr": "a", "ah_num": "a", "reserved": "b",
	"pd_handle": "handle", "mr_handle": "handle", "ah_handle": "handle", "cq_handle": "handle", "qp_handle": "handle", "srq_handle": "handle",
}

func TestMirrorsAreNamedAlike(t *testing.T) {
	for _, l := range layouts {
		for i, c := range strings.Fields(l.fields) {
			name := strings.ToLower(reflect.TypeOf(l.mirror).Field(i).Name)
			if plain := strings.ReplaceAll(c, "_", ""); name != plain && name != renamed[c] {
				t.Errorf("struct %s: field %d is %s in the kernel's headers and %s here: are two exchanged?", l.c, i, c, name)
			}
		}
	}
}

func offset(v any, field string) uintptr {
	f, ok := reflect.TypeOf(v).FieldByName(field)
	if !ok {
		panic(field)
	}
	return f.Offset
}

// oracle contains a C compiler's values for the headers: for each C expression, a struct's size or
// an offset in it.
const oracle = "testdata/abi.json"

// mirrored returns the values of this package for the same expressions.
func mirrored() map[string]uintptr {
	out := map[string]uintptr{}
	for c, v := range members {
		out[c] = v
	}
	for _, l := range layouts {
		t := reflect.TypeOf(l.mirror)
		fields := strings.Fields(l.fields)
		size := t.Size()
		for i, name := range fields {
			out["offsetof(struct "+l.c+", "+name+")"] = t.Field(i).Offset
		}
		if t.Kind() == reflect.Struct && t.NumField() > len(fields) {
			size = t.Field(len(fields)).Offset
		}
		out["sizeof(struct "+l.c+")"] = size
	}
	return out
}

func TestLayoutsAreTheHeaders(t *testing.T) {
	text, err := os.ReadFile(oracle)
	if err != nil {
		t.Fatal(err)
	}
	var want map[string]uintptr
	if err := json.Unmarshal(text, &want); err != nil {
		t.Fatal(err)
	}
	got := mirrored()
	for c, v := range got {
		if w, ok := want[c]; !ok {
			t.Errorf("the oracle does not know %s: run the tests with -tags abi -update", c)
		} else if w != v {
			t.Errorf("%s is %d in the kernel's headers and %d here", c, w, v)
		}
	}
	for c := range want {
		if _, ok := got[c]; !ok {
			t.Errorf("nothing here answers to the oracle's %s", c)
		}
	}
}
