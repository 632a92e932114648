package iwarp

import (
	"time"

	"github.com/rdmactor/rdmactor/iwarp/core"
)

// Config is what can be chosen about a Driver. New fills it with the defaults named here; an
// Option changes what it likes.
type Config struct {
	// Device is the device's name in Info and Devices: "iwarp0".
	Device string
	// CRC asks every peer for CRC32c in both directions: false. A peer that asks gets it in any
	// case. For soft-iWARP peers only where nothing on the way cuts TCP segments anew: they take a
	// CRC that is split over two for wrong.
	CRC bool
	// PeerToPeer has connecting sides ask for the peer-to-peer model (RFC 6581), in which either
	// side may send first: true. Some adapters accept nothing else.
	PeerToPeer bool
	// MaxConns bounds an instance's TCP connections, in set-up, open and lingering: 65536.
	MaxConns int
	// MaxSetups bounds the inbound connections whose MPA Request has not completely arrived, or was
	// refused by the device itself: 1024. More wait in the kernel's queue (listen(2)) until a
	// Request is complete. The oldest makes room when it has had no Request for a tenth of
	// RequestTimeout.
	MaxSetups int
	// MaxLinger bounds the sockets that outlive their identifier to see the peer's FIN: 256.
	// Above, the oldest is closed.
	MaxLinger int
	// RequestTimeout is how long an inbound connection may take for its Request, and after Accept
	// until it is established: 5 s.
	RequestTimeout time.Duration
	// ReplyTimeout is how long a connecting side waits for TCP, and then again for the Reply: 10 s.
	ReplyTimeout time.Duration
	// LingerTimeout is how long the socket of a destroyed identifier waits for the peer's FIN: 5 s.
	LingerTimeout time.Duration
	// MessageTimeout is how long a peer may be silent in the middle of a message, whose receive
	// it occupies: 30 s. Then the connection is given up.
	MessageTimeout time.Duration
	// UserTimeout is TCP_USER_TIMEOUT: how long sent bytes may stay unacknowledged, or an idle peer
	// silent to keep-alives, before the connection is given up: 30 s. A connection whose peer
	// answers, but has no room for so long, is given up too, unless its owner looks after the peer
	// (verbs.Mover).
	UserTimeout time.Duration
}

// Option changes a Config.
type Option func(*Config)

func defaults() Config {
	return Config{
		Device:         "iwarp0",
		PeerToPeer:     true,
		MaxConns:       65536,
		MaxSetups:      1024,
		MaxLinger:      256,
		RequestTimeout: 5 * time.Second,
		ReplyTimeout:   10 * time.Second,
		LingerTimeout:  5 * time.Second,
		MessageTimeout: 30 * time.Second,
		UserTimeout:    30 * time.Second,
	}
}

// Limits of the device that no Config changes.
const (
	maxBacklog = 1024             // as rdma_ucm's default
	maxQPWR    = 32768            // work requests outstanding per queue
	maxRDAtom  = core.UnagreedIRD // IRD and ORD, as soft-iWARP
	maxPrivate = core.MaxPrivateData
)

// Driver is the embedded iWARP device as a cmid.Driver. It may be opened on any number of loops;
// the instances share the host's addresses and ports, and how often strangers are logged, nothing
// else.
type Driver struct {
	cfg       Config
	strangers strangers
}

// New makes the device. It opens nothing yet.
func New(opts ...Option) *Driver {
	d := &Driver{cfg: defaults()}
	for _, o := range opts {
		o(&d.cfg)
	}
	return d
}

// Name is "iwarp" and the device's name.
func (d *Driver) Name() string { return "iwarp " + d.cfg.Device }
