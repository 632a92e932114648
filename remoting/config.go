package remoting

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/netip"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"golang.org/x/sys/unix"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/actor/reconnect"
	"github.com/rdmactor/rdmactor/codec"
	"github.com/rdmactor/rdmactor/internal/enum"
	"github.com/rdmactor/rdmactor/remoting/internal/frame"
	"github.com/rdmactor/rdmactor/remoting/internal/outbox"
)

// Config configures a node. Numbers that are not positive have the defaults, like other zero
// fields.
type Config struct {
	// Name is the address in the node's PIDs, by which its peers know it: "10.0.0.1:7471". No
	// other node has it. "": where it listens. Port 0, and the address of all interfaces, are
	// EINVAL.
	Name string
	// Listen is where the device listens, "host:port": Name. With port 0 Name may be "".
	Listen string
	// Member is the id that peers are shown: the actor system's ID.
	Member string
	// Incarnation is larger than that of any earlier process with this Name: the time of the
	// start, in nanoseconds.
	Incarnation uint64
	// Resolve returns the address at which a peer is to be dialled. It is called off the loops,
	// before each dial, and may block until ctx ends. nil: a peer's name is its address.
	Resolve func(ctx context.Context, name string) (addr string, err error)

	// Queue is how many bytes may wait for one peer: 8 MiB, and at least MaxMessage. System
	// messages have an eighth of that besides.
	Queue int
	// Overflow is the policy for messages that find no room in the Queue: DeadLetter.
	Overflow Overflow
	// Patience is how long messages wait for a peer that is not connected, and how long an actor
	// that does not consume its messages may stop its peer: 10 s. Unless Dial has a Timeout, the
	// addresses of the peer's name share it.
	Patience time.Duration
	// Peers is how many other nodes this one deals with at a time: 1,024. At most half of them may
	// be nodes that have dialled before this one sent them anything, and of these one address has
	// at most as many as are left for all others. At most half may be nodes that this one has sent
	// something and that are not connected.
	Peers int
	// MaxMessage is how large a message this node takes, in bytes, with its names: 4 MiB; at least
	// 64 KiB. The peer's limit may be lower or higher.
	MaxMessage int

	// NodeOf returns the name of the node that has an identity: that of a secured connection
	// (ID.Security), "" of one that is not. A peer that claims to be another node is refused,
	// whichever side has dialled, before the other one's connection can suffer. "": no node has it.
	// It is called on loops and must not block; if it panics, the peer is refused. nil: any peer
	// may connect under the name of any node that is not connected. With a key or a certificate for
	// each node, it is what keeps one from passing for another.
	NodeOf func(identity string) (name string)
	// OwnSenders refuses messages whose sender is at a third node. A forwarding node names the
	// original sender, without a proof: a peer can name any actor of any node. With it, requests
	// cannot be forwarded from one node to another, unless the answer comes back the same way.
	OwnSenders bool
	// Expose lists the operations that peers may do here. Zero: they may answer the messages that
	// they received, and do nothing else.
	Expose Expose
	// Admit decides whether a peer may connect. An error refuses it, and is its reason. It is
	// called off the loops, once for each connection, and has 3 s. nil: every node that knows the
	// protocol may.
	Admit func(Peer) error
	// Allow is asked besides Expose: once for each name that a peer uses, and again when Expose or
	// Conceal was called. An error refuses it. It is called on the peer's loop and must not block.
	// nil: Expose decides.
	Allow func(peer Peer, access Access, name string) error
	// Kinds are the actors that peers may spawn here (Node.Spawn), within Expose.Spawn.
	Kinds map[string]*actor.Props

	// Codec encodes and decodes messages. nil: protobuf.
	Codec codec.Codec
	// ID configures every connection. Its MaxMessage is this Config's.
	ID rdma.IDConfig
	// Dial is every attempt to connect; its Addr is not used.
	Dial rdma.Dial
	// Backoff is how long to wait between attempts; Most is 1 s.
	Backoff reconnect.Backoff
}

// Overflow is the policy for messages that find no room in the queue for their peer.
type Overflow uint8

// The policies. System messages have a reserve, and are not affected.
const (
	// DeadLetter makes it a dead letter: a future fails immediately with ErrDeadLetter, another
	// sender gets *actor.DeadLetterResponse.
	DeadLetter Overflow = iota
	// Fail gives the sender, or the future, *Refused with ErrQueueFull. Without a sender it is a
	// dead letter.
	Fail
	// Block makes the sender wait until there is room. On a loop, which must not wait, it acts as
	// Fail.
	Block
)

var overflowNames = [...]string{"dead letter", "fail", "block"}

// String is the policy's name.
func (o Overflow) String() string { return enum.At(overflowNames[:], o, "overflow %d") }

// MarshalText is String's text.
func (o Overflow) MarshalText() ([]byte, error) { return []byte(o.String()), nil }

const (
	defaultQueue      = 8 << 20
	defaultPatience   = 10 * time.Second
	defaultPeers      = 1024
	defaultMaxMessage = 4 << 20
	defaultMost       = time.Second

	// systemShare is the part of the queue that system messages have besides.
	systemShare = 8
	// inboxBytes is how much of a peer's messages may wait for actors here.
	inboxBytes = 8 << 20
	// greetingTime is how long a connection may take until both sides have admitted each other.
	// It bounds Config.Admit, and a first message that was lost.
	greetingTime = 3 * time.Second
)

// withDefaults fills zero fields, and checks the others.
func (c Config) withDefaults(sys *actor.ActorSystem, now time.Time) (Config, error) {
	if c.Listen == "" {
		c.Listen = c.Name
	}
	if c.Listen == "" {
		return c, fmt.Errorf("neither Name nor Listen: %w", unix.EINVAL)
	}
	c.Member = cmp.Or(c.Member, sys.ID)
	c.Incarnation = cmp.Or(c.Incarnation, uint64(now.UnixNano()))
	c.Queue = cmp.Or(max(c.Queue, 0), defaultQueue)
	c.Patience = cmp.Or(max(c.Patience, 0), defaultPatience)
	c.Peers = cmp.Or(max(c.Peers, 0), defaultPeers)
	c.MaxMessage = cmp.Or(max(c.MaxMessage, 0), defaultMaxMessage)
	if c.Backoff.Most <= 0 {
		c.Backoff.Most = defaultMost
	}
	if c.Codec == nil {
		c.Codec = codec.New()
	}
	c.ID.MaxMessage = c.MaxMessage
	c.ID.RefuseForeign, c.ID.Handler, c.ID.Context = true, nil, nil
	switch {
	case c.Name != "" && isUndialable(c.Name, false):
		return c, fmt.Errorf("peers cannot dial Name %q: say there what they dial, and in Listen where to listen: %w", c.Name, unix.EINVAL)
	case c.Name == "" && isUndialable(c.Listen, true):
		return c, fmt.Errorf("the address of Listen, %q, is all addresses: say in Name which one peers dial: %w", c.Listen, unix.EINVAL)
	case len(c.Name) > frame.MaxName || len(c.Member) > frame.MaxName:
		return c, fmt.Errorf("a Name and a Member have at most %d bytes: %w", frame.MaxName, unix.EINVAL)
	case c.MaxMessage < outbox.FrameBytes || c.MaxMessage > frame.MaxMessage:
		return c, fmt.Errorf("MaxMessage is %d, and has to be between %d and %d: %w", c.MaxMessage, outbox.FrameBytes, frame.MaxMessage, unix.EINVAL)
	case c.Queue < c.MaxMessage:
		c.Queue = c.MaxMessage
	}
	return c, nil
}

// isUndialable reports whether dialling this address, as the name of a node, reaches no node, or
// the dialler. Names that are no addresses are left to Config.Resolve.
func isUndialable(name string, anyPort bool) bool {
	host, port, err := net.SplitHostPort(name)
	if err != nil {
		return false
	}
	ip, _ := netip.ParseAddr(host)
	return host == "" || ip.Unmap().IsUnspecified() || port == "0" && !anyPort
}
