package verbs

import "github.com/rdmactor/rdmactor/internal/enum"

// Status is a completion's outcome. The numbers are those of enum ibv_wc_status.
type Status uint8

// The statuses that rdmactor's devices report. When the peer refuses an access, the work request
// completes with StatusRemAccess on InfiniBand. On iWARP it completes with StatusFlushed, and the
// reason is in the event that ends the connection.
const (
	StatusSuccess   Status = 0  // IBV_WC_SUCCESS
	StatusLocLen    Status = 1  // IBV_WC_LOC_LEN_ERR: the message is longer than the receive
	StatusLocQPOp   Status = 2  // IBV_WC_LOC_QP_OP_ERR
	StatusLocProt   Status = 4  // IBV_WC_LOC_PROT_ERR
	StatusFlushed   Status = 5  // IBV_WC_WR_FLUSH_ERR: the queue pair ended first
	StatusRemInvReq Status = 9  // IBV_WC_REM_INV_REQ_ERR
	StatusRemAccess Status = 10 // IBV_WC_REM_ACCESS_ERR
	StatusRemOp     Status = 11 // IBV_WC_REM_OP_ERR
	StatusRetryExc  Status = 12 // IBV_WC_RETRY_EXC_ERR
	// IBV_WC_RNR_RETRY_EXC_ERR: the peer had no receive posted for too long
	StatusRNRRetryExc Status = 13
	StatusFatal       Status = 19 // IBV_WC_FATAL_ERR
	StatusGeneral     Status = 21 // IBV_WC_GENERAL_ERR
)

var statusText = map[Status]string{
	StatusSuccess:     "success",
	StatusLocLen:      "local length error",
	StatusLocQPOp:     "local queue pair operation error",
	StatusLocProt:     "local protection error",
	StatusFlushed:     "work request flushed",
	StatusRemInvReq:   "remote invalid request",
	StatusRemAccess:   "remote access error",
	StatusRemOp:       "remote operation error",
	StatusRetryExc:    "transport retry counter exceeded",
	StatusRNRRetryExc: "receiver not ready retry counter exceeded",
	StatusFatal:       "fatal error",
	StatusGeneral:     "general error",
}

// String describes the status in words (ibv_wc_status_str(3)).
func (s Status) String() string { return enum.Name(statusText, s, "unknown status %d") }

// MarshalText returns String's text.
func (s Status) MarshalText() ([]byte, error) { return []byte(s.String()), nil }
