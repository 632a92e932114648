package cmid

import (
	"cmp"
	"math/bits"
	"time"

	"github.com/rdmactor/rdmactor/verbs"
)

// Transport has an operator's settings of how connections use their network. The zero value leaves
// all at their defaults.
type Transport struct {
	// TrafficClass is the byte of each packet's IP header that has the DSCP in its upper six bits
	// and ECN in the two below: rdma_set_option(3) with RDMA_OPTION_ID_TOS. 0: on RoCE the host's
	// (default_roce_tos of rdma_cm's configfs, which is 0 unless an administrator has set it), else
	// 0. On the embedded device it is IP_TOS, in which TCP keeps ECN's bits for itself.
	TrafficClass uint8
	// AckTimeout is how long a queue pair waits for an acknowledgement before it retransmits:
	// RDMA_OPTION_ID_ACK_TIMEOUT. It is rounded up to 4.096 µs times a power of two, from 8.192 µs
	// on, and devices wait up to four times as long. 0: the kernel's default, which is 2.1 s on
	// Linux 6.1 and 0.54 s on 6.12. iWARP ignores it: TCP measures its own.
	AckTimeout time.Duration
	// RetryCount is how often an unacknowledged message is retransmitted before its connection
	// ends. 0: 6 for the side that connects, and the peer's count on the other. More than 6 counts
	// as 6, because soft-RoCE never gives up at 7. iWARP ignores it.
	RetryCount uint8
	// RNRRetryCount is how often the peer retransmits a message for which this side had no receive
	// posted. 0, and more than 6: forever. iWARP ignores it.
	RNRRetryCount uint8
	// MinRNRTimer is how long the peer waits before it retransmits a message for which this side
	// had no receive. It is rounded up to a value that InfiniBand has, from 10 µs to 491.52 ms. 0:
	// 0.64 ms. iWARP ignores it.
	MinRNRTimer time.Duration
}

// Or returns t with the unset fields taken from d.
func (t Transport) Or(d Transport) Transport {
	return Transport{
		TrafficClass: cmp.Or(t.TrafficClass, d.TrafficClass), AckTimeout: cmp.Or(t.AckTimeout, d.AckTimeout),
		RetryCount: cmp.Or(t.RetryCount, d.RetryCount), RNRRetryCount: cmp.Or(t.RNRRetryCount, d.RNRRetryCount),
		MinRNRTimer: cmp.Or(t.MinRNRTimer, d.MinRNRTimer),
	}
}

// Set sets id's options. It takes effect before id resolves its route, or, for a request, before it
// is accepted. The error is that of the option.
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

// ConnectParam returns the parameters for Connect if p is nil, and p otherwise.
func (t *Transport) ConnectParam(p *ConnParam) *ConnParam {
	return t.connParam(p, cmp.Or(t.RetryCount, retries))
}

// AcceptParam is ConnectParam for Accept.
func (t *Transport) AcceptParam(p *ConnParam) *ConnParam { return t.connParam(p, t.RetryCount) }

func (t *Transport) connParam(p *ConnParam, again uint8) *ConnParam {
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
		if rnrDuration(e) >= t.MinRNRTimer {
			return e
		}
	}
	return maxRNRTimer
}

// rnrDuration returns the duration of an exponent of ConnParam.MinRNRTimer: 10 µs for 1, and 20,
// 30, 40, 60, 80, 120 µs and so on for those from 2 on. The verbs take 0 for 655.36 ms.
func rnrDuration(exponent uint8) time.Duration {
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

// retries is the default and the maximum of RetryCount: the largest count that ends on every
// device.
const retries = 6

// ackUnit is the unit of InfiniBand's Local ACK Timeout: exponent e means ackUnit << e.
const ackUnit = 4096 * time.Nanosecond

// ackTimeout returns the least exponent, from 1 on, that gives AckTimeout. 0 would mean no timeout.
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
	// on a VLAN is the VLAN's. GIDType and NetDev are the table's present entries.
	GIDIndex        uint8
	GIDType, NetDev string
	SL              uint8 // the service level, which on a VLAN is its priority (PCP)
	TrafficClass    uint8
	MTU             int           // bytes of a message in a packet
	AckTimeout      time.Duration // 0: infinite
	RetryCount      uint8
	RNRRetryCount   uint8 // 7: infinite
	// MinRNRTimer is how long the peer waits before it retransmits a message for which this side
	// had no receive.
	MinRNRTimer time.Duration
}

// PathOf returns the Path of the attributes that have brought a queue pair to RTR and to RTS. For
// drivers.
func PathOf(rtr, rts *verbs.QPAttr) Path {
	p := Path{
		GIDIndex: rtr.AH.GRH.SGIDIndex, SL: rtr.AH.SL, TrafficClass: rtr.AH.GRH.TrafficClass, MTU: 128 << min(rtr.PathMTU, 5),
		RetryCount: rts.RetryCount, RNRRetryCount: rts.RNRRetry,
		MinRNRTimer: rnrDuration(rtr.MinRNRTimer),
	}
	if rts.Timeout > 0 {
		p.AckTimeout = AckTimeout(rts.Timeout)
	}
	return p
}

// AckTimeout returns the duration of an exponent from 1 to 31, as in OptionAckTimeout: 4.096 µs
// times 2 to its power.
func AckTimeout(exponent uint8) time.Duration { return ackUnit << min(exponent, 31) }

// Path returns how the connection's packets go through the network; the zero Path if that is
// unknown.
func (id *ID) Path() Path {
	if p, ok := id.driver.(Pather); ok {
		return p.Path()
	}
	return Path{}
}
