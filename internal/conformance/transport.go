package conformance

import (
	"time"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/internal/sides"
)

// exponentTimeout returns the timeout that an exponent of InfiniBand's means.
func exponentTimeout(n int) time.Duration { return 4096 * time.Nanosecond << n }

// usualRNR is how long a peer waits for a receive by default. The kernel's own 655 ms would hold up
// every message that is sent before its receive.
const usualRNR = 640 * time.Microsecond

// transportScenarios test which way the packets of a connection go, and what of that each side
// chooses: rdma_set_option(3), and the counts of struct rdma_conn_param.
var transportScenarios = scenarios{
	"each side's own": func(w *world) {
		dials := cmid.Transport{TrafficClass: 0x68, AckTimeout: exponentTimeout(13) + 1, RetryCount: 3, RNRRetryCount: 5, MinRNRTimer: time.Millisecond}
		serves := cmid.Transport{TrafficClass: 0x20, AckTimeout: time.Second, RetryCount: 9, RNRRetryCount: 9}
		active, passive := w.connectAndSend(&dials, &serves)
		w.wantPath("the side that connects", active,
			cmid.Path{TrafficClass: 0x68, AckTimeout: exponentTimeout(14), RetryCount: 3, RNRRetryCount: 7, MinRNRTimer: 1280 * time.Microsecond})
		w.wantPath("the other side", passive,
			cmid.Path{TrafficClass: 0x20, AckTimeout: exponentTimeout(18), RetryCount: 6, RNRRetryCount: 5, MinRNRTimer: usualRNR})
	},
	"the request's": func(w *world) {
		active, passive := w.connectAndSend(&cmid.Transport{TrafficClass: 0x68, RetryCount: 3}, &cmid.Transport{})
		usual := passive.AckTimeout
		w.wantPath("the side that connects", active, cmid.Path{TrafficClass: 0x68, AckTimeout: usual, RetryCount: 3, RNRRetryCount: 7, MinRNRTimer: usualRNR})
		if w.hasDeviation(OnlyTrafficClass) {
			w.wantPath("the other side", passive, cmid.Path{}) // TCP keeps it to itself
			return
		}
		w.wantPath("the other side", passive, cmid.Path{TrafficClass: 0x68, AckTimeout: usual, RetryCount: 3, RNRRetryCount: 7, MinRNRTimer: usualRNR})
	},
	"the defaults": func(w *world) {
		active, passive := w.connectAndSend(&cmid.Transport{}, &cmid.Transport{})
		usual := active.AckTimeout
		if !w.IWARP && (usual < exponentTimeout(16) || usual > exponentTimeout(20)) {
			w.Errorf("without an option a queue pair waits for %v", usual)
		}
		for _, p := range []cmid.Path{active, passive} {
			w.wantPath("each side", p, cmid.Path{AckTimeout: usual, RetryCount: 6, RNRRetryCount: 7, MinRNRTimer: usualRNR})
		}
	},
}

// connectAndSend makes a connection whose sides have the settings a and b, and sends a message over
// it.
func (w *world) connectAndSend(a, b *cmid.Transport) (active, passive cmid.Path) {
	w.Helper()
	c := &sides.Link{Listener: w.Listener(tcp, sides.Any4(0)), Active: w.A.Create(tcp)}
	w.Must(a.Set(c.Active))
	w.Must(c.Active.ResolveAddr(cmid.Addr{}, w.Target(), time.Second))
	sides.Next[*cmid.AddrResolved](w.A, c.Active)
	w.Must(c.Active.ResolveRoute(time.Second))
	sides.Next[*cmid.RouteResolved](w.A, c.Active)
	c.AQ = w.Queues(c.Active, 1)
	w.Must(c.Active.Connect(nil, a.ConnectParam(nil)))
	c.Passive, _ = w.B.Request()
	w.Must(b.Set(c.Passive))
	c.BQ = w.Queues(c.Passive, 1)
	w.Must(c.Passive.Accept(nil, b.AcceptParam(nil)))
	w.Established(c)
	w.Must(c.AQ.PostSend(0, "hello"))
	w.Sent("the message", c.AQ)
	return c.Active.Path(), c.Passive.Path()
}

// wantPath requires that a connection was made with want. The rest of its Path is the device's. On
// iWARP only the traffic class can be chosen, and the kernel does not report it.
func (w *world) wantPath(which string, got, want cmid.Path) {
	w.Helper()
	switch {
	case w.hasDeviation(OnlyTrafficClass):
		want = cmid.Path{TrafficClass: want.TrafficClass}
	case w.IWARP:
		want = cmid.Path{}
	default:
		if got.GIDType == "" || got.NetDev == "" || got.MTU < 256 || got.MTU > 4096 {
			w.Errorf("%s: %+v, want a GID of an interface, and the MTU", which, got)
		}
		got = cmid.Path{
			TrafficClass: got.TrafficClass, AckTimeout: got.AckTimeout, RetryCount: got.RetryCount, RNRRetryCount: got.RNRRetryCount,
			MinRNRTimer: got.MinRNRTimer,
		}
	}
	if got != want {
		w.Errorf("%s: %+v, want %+v", which, got, want)
	}
}
