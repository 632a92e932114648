package cmid

import (
	"cmp"
	"math/bits"
	"time"

	"github.com/rdmactor/rdmactor/verbs"
)

// Transport is what an operator sets of how connections use their network. The zero value leaves
// everything to its default.
type Transport struct {
	// TrafficClass is the byte of each packet's IP header that has the DSCP in its upper six bits
	// and ECN in the two below: rdma_set_option(3) with RDMA_OPTION_ID_TOS. 0: on RoCE the host's
	// (default_roce_tos of rdma_cm's configfs, which is 0 unless an administrator has set it), else
	// 0. On the embedded device it is IP_TOS, in which TCP keeps ECN's bits for itself.
	TrafficClass uint8
	// AckTimeout is how long a queue pair waits for an acknowledgement before it sends again:
	// RDMA_OPTION_ID_ACK_TIMEOUT. It is rounded up to 4.096 µs times a power of two, from 8.192 µs
	// on, and devices wait up to four times as long. 0: what the kernel takes, which is 2.1 s on
	// Linux 6.1 and 0.54 s on 6.12. iWARP ignores it: TCP measures its own.
	AckTimeout time.Duration
	// RetryCount is how often a message that is not acknowledged is sent again before its
	// connection ends. 0: 6 for the side that connects, and what the peer has asked for on the
	// other. More than 6 counts as 6, because soft-RoCE takes 7 as no end. iWARP ignores it.
	RetryCount uint8
	// RNRRetryCount is how often the peer is to send a message again for which this side had no
	// receive posted. 0, and more than 6: for ever. iWARP ignores it.
	RNRRetryCount uint8
	// MinRNRTimer is how long the peer waits before it sends again what this side had no receive
	// for. It is rounded up to a value that InfiniBand has, from 10 µs to 491.52 ms. 0: 0.64 ms.
	// iWARP ignores it.
	MinRNRTimer time.Duration
}

// Or is t, with d's where it says nothing.
func (t Transport) Or(d Transport) Transport {
	return Transport{
		TrafficClass: cmp.Or(t.TrafficClass, d.TrafficClass), AckTimeout: cmp.Or(t.AckTimeout, d.AckTimeout),
		RetryCount: cmp.Or(t.RetryCount, d.RetryCount), RNRRetryCount: cmp.Or(t.RNRRetryCount, d.RNRRetryCount),
		MinRNRTimer: cmp.Or(t.MinRNRTimer, d.MinRNRTimer),
	}
}

// Set sets what id has options for. It counts if id has not resolved its route, or if it is a
// request's and has not been accepted. The error is that of the option.
func (t *Transport) Set(id *ID) error {
	if t.TrafficClass != 0 {
		if err := id.SetOption(OptionTOS, int(t.TrafficClass)); err != nil {
			return err
		}
	}
	if t.AckTimeout <= 0 || id.Datagram() {
		return nil
	}
	return id.SetOption(OptionAckTimeout, t.ackTimeout())
}

// ConnectParam is what Connect is to be given if p is nil. What is not nil has counts of its own,
// and stays as it is.
func (t *Transport) ConnectParam(p *ConnParam) *ConnParam {
	return t.param(p, cmp.Or(t.RetryCount, retries))
}

// AcceptParam is ConnectParam for Accept.
func (t *Transport) AcceptParam(p *ConnParam) *ConnParam { return t.param(p, t.RetryCount) }

func (t *Transport) param(p *ConnParam, again uint8) *ConnParam {
	if p != nil || t.RetryCount == 0 && t.RNRRetryCount == 0 && t.MinRNRTimer <= 0 {
		return p
	}
	const deviceMax, noEnd = 255, 7
	return &ConnParam{
		ResponderResources: deviceMax, InitiatorDepth: deviceMax,
		RetryCount: min(again, retries), RNRRetryCount: cmp.Or(min(t.RNRRetryCount, noEnd), noEnd),
		MinRNRTimer: t.rnrTimer(),
	}
}

// DefaultMinRNRTimer is the exponent of ConnParam.MinRNRTimer that 0 means.
const DefaultMinRNRTimer = 12

// maxRNRTimer is the largest exponent.
const maxRNRTimer = 31

// rnrTimer returns the least exponent that gives MinRNRTimer, 0 without one.
func (t *Transport) rnrTimer() uint8 {
	if t.MinRNRTimer <= 0 {
		return 0
	}
	for e := uint8(1); e < maxRNRTimer; e++ {
		if RNRTimer(e) >= t.MinRNRTimer {
			return e
		}
	}
	return maxRNRTimer
}

// RNRTimer returns what an exponent of ConnParam.MinRNRTimer means: 10 µs for 1, and 20, 30, 40,
// 60, 80, 120 µs and so on for those from 2 on. The verbs take 0 for 655.36 ms.
func RNRTimer(exponent uint8) time.Duration {
	const unit = 10 * time.Microsecond
	switch e := min(exponent, maxRNRTimer); {
	case e == 0:
		return unit << 16
	case e == 1:
		return unit
	case e%2 == 0:
		return unit << (e / 2)
	default:
		return unit << (e / 2) * 3 / 2
	}
}

// retries is how often data that is not acknowledged is sent again, if nothing else is said, and at
// most: the largest count that ends on every device.
const retries = 6

// ackUnit is what the exponents of timeouts count from (InfiniBand's Local ACK Timeout).
const ackUnit = 4096 * time.Nanosecond

// ackTimeout is the least exponent that gives AckTimeout. 0 would mean that there is no timeout.
func (t *Transport) ackTimeout() int {
	units := uint64((t.AckTimeout + ackUnit - 1) / ackUnit)
	return min(max(bits.Len64(units-1), 1), 31)
}

// Path is how the packets of a connection go through the network. It is known of connections on
// InfiniBand and RoCE whose queue pair the driver has set up, from Established on. On the embedded
// device TrafficClass is known, and nothing else.
type Path struct {
	// GIDIndex is the source's place in the port's table of GIDs, GIDType its kind there ("RoCE
	// v2", "IB/RoCE v1"), and NetDev the network interface that it belongs to, which of an address
	// on a VLAN is the VLAN's. GIDType and NetDev are what the table says now.
	GIDIndex        uint8
	GIDType, NetDev string
	SL              uint8 // the service level, which on a VLAN is its priority (PCP)
	TrafficClass    uint8
	MTU             int           // bytes of a message in a packet
	AckTimeout      time.Duration // 0: for ever
	RetryCount      uint8
	RNRRetryCount   uint8 // 7: for ever
	// MinRNRTimer is how long the peer waits before it sends again what this side had no receive
	// for.
	MinRNRTimer time.Duration
}

// PathOf is the Path of the attributes that have brought a queue pair to RTR and to RTS. For
// drivers.
func PathOf(rtr, rts *verbs.QPAttr) Path {
	p := Path{
		GIDIndex: rtr.AH.GRH.SGIDIndex, SL: rtr.AH.SL, TrafficClass: rtr.AH.GRH.TrafficClass, MTU: 128 << min(rtr.PathMTU, 5),
		RetryCount: rts.RetryCount, RNRRetryCount: rts.RNRRetry,
		MinRNRTimer: RNRTimer(rtr.MinRNRTimer),
	}
	if rts.Timeout > 0 {
		p.AckTimeout = AckTimeout(rts.Timeout)
	}
	return p
}

// AckTimeout is what an exponent from 1 to 31 means, as in OptionAckTimeout: 4.096 µs times 2 to
// its power.
func AckTimeout(exponent uint8) time.Duration { return ackUnit << min(exponent, 31) }

// Path is how the connection's packets go through the network; the zero Path if that is not known.
func (id *ID) Path() Path {
	if p, ok := id.driver.(Pather); ok {
		return p.Path()
	}
	return Path{}
}
