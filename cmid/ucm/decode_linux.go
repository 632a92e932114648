package ucm

import (
	"encoding/binary"
	"errors"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/cmid/ucm/internal/uabi"
	"github.com/rdmactor/rdmactor/states"
	"github.com/rdmactor/rdmactor/verbs"
)

// decodeEvent fills in event from the kernel's. Its private data is ev's memory, and valid until
// the next event.
func (in *instance) decodeEvent(datagram bool, ev *uabi.EventResp) {
	in.event = cmid.DriverEvent{Kind: states.Kind(ev.Event), Status: int32(ev.Status)}
	t := &in.event
	switch {
	case ev.Event == uabi.EventUser || ev.Event == uabi.EventInternal:
		t.Arg = binary.NativeEndian.Uint64(ev.Param[:])
		return
	case datagram:
		p := ev.UD()
		t.PrivateData = p.PrivateData[:p.PrivateDataLen]
		t.Param = cmid.ConnParam{QPNum: p.QPNum, QKey: p.QKey}
		t.AH = ahAttr(&p.AHAttr)
	default:
		p := ev.Conn()
		t.PrivateData = p.PrivateData[:p.PrivateDataLen]
		t.Param = cmid.ConnParam{
			ResponderResources: p.ResponderResources, InitiatorDepth: p.InitiatorDepth, FlowControl: p.FlowControl != 0,
			RetryCount: p.RetryCount, RNRRetryCount: p.RNRRetryCount, SRQ: p.SRQ != 0, QPNum: p.QPNum,
		}
	}
	t.Param.ECE = cmid.ECE{VendorID: ev.ECE.VendorID, AttrMod: ev.ECE.AttrMod}
}

// errnoOf finds the errno in err; EIO when there is none.
func errnoOf(err error) unix.Errno {
	var e unix.Errno
	if errors.As(err, &e) {
		return e
	}
	return unix.EIO
}

// qpAttr converts the kernel's answer, and returns which fields it means. Some kernels set bits
// above those that exist.
func qpAttr(r *uabi.QPAttr) (verbs.QPAttr, verbs.QPAttrMask) {
	const known = verbs.QPAttrDestQPN<<1 - 1
	return verbs.QPAttr{
		State: verbs.QPState(r.QPState), CurState: verbs.QPState(r.CurQPState), PathMTU: r.PathMTU, QKey: r.QKey, RQPSN: r.RQPSN,
		SQPSN: r.SQPSN, DestQPN: r.DestQPNum, AccessFlags: r.QPAccessFlags, AH: ahAttr(&r.AHAttr), PKeyIndex: r.PKeyIndex,
		MaxRDAtomic: r.MaxRDAtomic, MaxDestRDAtomic: r.MaxDestRDAtomic, MinRNRTimer: r.MinRNRTimer, Port: r.PortNum, Timeout: r.Timeout,
		RetryCount: r.RetryCnt, RNRRetry: r.RNRRetry,
	}, verbs.QPAttrMask(r.QPAttrMask) & known
}

func ahAttr(r *uabi.AHAttr) verbs.AHAttr {
	return verbs.AHAttr{
		Global: r.IsGlobal != 0, DLID: r.DLID, SL: r.SL, SrcPathBits: r.SrcPathBits, StaticRate: r.StaticRate, Port: r.PortNum,
		GRH: verbs.GlobalRoute{
			DGID: r.GRH.DGID, FlowLabel: r.GRH.FlowLabel, SGIDIndex: r.GRH.SGIDIndex, HopLimit: r.GRH.HopLimit,
			TrafficClass: r.GRH.TrafficClass,
		},
	}
}

func boolBit(b bool) uint8 {
	if b {
		return 1
	}
	return 0
}
