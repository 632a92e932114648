package iwarp

import (
	"cmp"
	"sync/atomic"
	"time"

	"github.com/rdmactor/rdmactor/internal/iwarp/core"
	"github.com/rdmactor/rdmactor/internal/optional"
	"github.com/rdmactor/rdmactor/internal/sockets"
)

// Config is the configuration of a Driver. Fields that are not set, or not positive, are the
// defaults named here.
type Config struct {
	// Device is the device's name in Info and Devices: "iwarp0".
	Device string
	// CRC requests CRC32c in both directions from every peer: false. A peer that requests it gets
	// it in any case. With soft-iWARP peers it works only if nothing on the path resegments the TCP
	// stream: soft-iWARP considers a CRC wrong that is split over two segments.
	CRC bool
	// ClientServer makes connecting sides use MPA's client-server model, in which the connecting
	// side must send first: false. Otherwise they request the peer-to-peer model (RFC 6581), in
	// which either side may. Some adapters accept only the former.
	ClientServer bool
	// MaxConns limits an instance's TCP connections, in set-up, open and lingering: 65536. Further
	// incoming ones are closed, and counted as strangers.
	MaxConns int
	// MaxSetups limits the inbound connections whose MPA Request has not completely arrived, or was
	// refused by the device itself: 1024. Further ones wait in the kernel's queue (listen(2)) until
	// a Request is complete. The oldest connection is closed to make room if its Request has not
	// arrived within a tenth of RequestTimeout.
	MaxSetups int
	// MaxLinger bounds the sockets that outlive their identifier while they wait for the peer's
	// FIN: 256. If there are more, the oldest is closed.
	MaxLinger int
	// RequestTimeout is how long an inbound connection may take for its Request, and after Accept
	// until it is established: 5 s.
	RequestTimeout time.Duration
	// ReplyTimeout is how long a connecting side waits for TCP, and then again for the Reply: 10 s.
	ReplyTimeout time.Duration
	// LingerTimeout is how long the socket of a destroyed identifier waits for the peer's FIN: 5 s.
	LingerTimeout time.Duration
	// MessageTimeout is how long a peer may be silent in the middle of a message, whose receive it
	// occupies: 30 s. Then the connection is given up.
	MessageTimeout time.Duration
	// UserTimeout is TCP_USER_TIMEOUT: how long sent bytes may stay unacknowledged, or an idle peer
	// silent to keep-alives, before the connection is given up: 30 s. A connection whose peer
	// answers, but has no room for that long, is given up, too, unless its owner checks the peer
	// (verbs.Mover). It also limits how long data that arrived on a lost connection waits for a
	// receive, counted from the last message that was received.
	UserTimeout time.Duration
}

func (c Config) withDefaults() Config {
	c.Device = cmp.Or(c.Device, "iwarp0")
	c.MaxConns = positiveOr(c.MaxConns, 65536)
	c.MaxSetups = positiveOr(c.MaxSetups, 1024)
	c.MaxLinger = positiveOr(c.MaxLinger, 256)
	c.RequestTimeout = positiveOr(c.RequestTimeout, 5*time.Second)
	c.ReplyTimeout = positiveOr(c.ReplyTimeout, 10*time.Second)
	c.LingerTimeout = positiveOr(c.LingerTimeout, 5*time.Second)
	c.MessageTimeout = positiveOr(c.MessageTimeout, 30*time.Second)
	c.UserTimeout = positiveOr(c.UserTimeout, 30*time.Second)
	return c
}

// positiveOr returns v, or the default if v is not positive.
func positiveOr[T ~int | ~int64](v, byDefault T) T { return cmp.Or(max(v, 0), byDefault) }

// Limits of the device that no Config changes.
const (
	maxBacklog = 1024             // same as rdma_ucm's default
	maxQPWR    = 32768            // work requests outstanding per queue
	maxRDAtom  = core.UnagreedIRD // IRD and ORD, same as soft-iWARP
	maxPrivate = core.MaxPrivateData
)

// Driver is the embedded iWARP device as a cmid.Driver. It may be opened on any number of loops.
// The instances share the host's addresses and ports, and the limit on how often strangers are
// logged, but nothing else.
type Driver struct {
	cfg       Config
	stack     func() sockets.Stack // nil: Linux's
	ports     *portTable
	strangers strangers
	starved   strangers               // the same limit, for listeners that cannot accept
	capture   atomic.Pointer[Capture] // nil: none
}

// New makes the device. It opens nothing yet.
func New(cfg ...Config) *Driver {
	return &Driver{cfg: optional.Value(cfg).withDefaults(), ports: ports}
}

// NewOn makes the device with configuration c, for one process on a simulated machine. stack makes
// the Stack of each loop, and is called on any goroutine. NewOn is only for this project's
// simulator: package sockets is internal.
func (c Config) NewOn(stack func() sockets.Stack) *Driver {
	return &Driver{cfg: c.withDefaults(), stack: stack, ports: newPortTable()}
}

// Name returns "iwarp" and the device's name.
func (d *Driver) Name() string { return "iwarp " + d.cfg.Device }
