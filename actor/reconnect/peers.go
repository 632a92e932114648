package reconnect

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"sync"

	"github.com/asynkron/protoactor-go/actor"
	"golang.org/x/sys/unix"

	rdma "github.com/rdmactor/rdmactor/actor"
)

// Peers is for nodes that dial each other. Of the connections that two nodes make to each other
// exactly one stays. Whoever has dialled it, it is a generation of the reconnecting actor on both
// sides. Config.Peers and Config.Peer say to which node a reconnecting actor connects; the
// listener's owner passes requests on with Request. Any goroutine.
//
// The rule: while both dial, the dial of the lower node id stands, and the other is rejected, or
// given up, before a message could have flowed. A node that waits accepts. Dials are numbered
// within an incarnation. A request that is older than the present connection (a dial that was
// given up) is rejected. One that is newer replaces it, because the peer would not dial if it had
// that connection.
//
// Nobody has proved what a request says of its node. So nothing follows from it for longer than
// its connection lasts, nor for a connection with somebody else. A request from another address
// than that of the present connection is rejected until that has ended (keepalive sees to it),
// whatever incarnation it claims. A request from the node's own address (that of Config.Dial, or
// where a dial was answered) replaces a connection from elsewhere, and who answers a dial at that
// address is the node. A rejection ends no actor: it tries again.
//
// So an attacker that can neither receive at the node's address nor intercept what goes there
// cannot take a connection away, nor keep the node out. While the node has no connection, anybody
// who reaches the listener may pass for it until it comes. Processes behind one address (of one
// host, or of a NAT) cannot be distinguished: there the later incarnation stays, for as long as it
// is connected. And a node that dials from another address than it is dialled at may have crashed
// without anybody noticing. Then it waits until its last connection is given up.
type Peers struct {
	node, incarnation uint64

	mu    sync.Mutex
	links map[uint64]*actor.PID
}

// NewPeers makes the table of node, whose id no other node has. incarnation is larger than that of
// any earlier process that was the node: the time of its start, or a count that is kept.
func NewPeers(node, incarnation uint64) *Peers {
	return &Peers{node: node, incarnation: incarnation, links: make(map[uint64]*actor.PID)}
}

// Request takes a request from a node that has a reconnecting actor here: that actor answers it.
// False: it is from somebody else, and its owner's to answer. It is called by the listener's owner
// in Receive. The listener has to be on the loop of the reconnecting actors (that of their owner),
// and its connections have to stay there.
func (p *Peers) Request(ctx actor.Context, r *rdma.ConnectRequest) (taken bool) {
	h, user, ok := parseHello(r.PrivateData)
	if !ok || h.kind != helloRequest {
		return false
	}
	p.mu.Lock()
	link := p.links[h.node]
	p.mu.Unlock()
	if link == nil {
		return false
	}
	ctx.ActorSystem().Root.RequestWithCustomSender(ctx.Sender(), &rdma.Handover{To: link}, link)
	ctx.Send(link, &request{id: ctx.Sender(), from: host(r.Peer), hello: h, user: append([]byte(nil), user...)})
	return true
}

func (p *Peers) join(node uint64, link *actor.PID) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if node == p.node || p.links[node] != nil {
		return fmt.Errorf("node %d is this one, or has a reconnecting actor already: %w", node, unix.EINVAL)
	}
	p.links[node] = link
	return nil
}

func (p *Peers) leave(node uint64, link *actor.PID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if was := p.links[node]; was != nil && was.Equal(link) { // it may have been refused
		delete(p.links, node)
	}
}

// Why a connection of a node with Peers ends or is not made; errors.Is finds them in Down.Err.
var (
	// ErrSimultaneous: the two nodes have dialled each other, and the other connection stands.
	ErrSimultaneous = errors.New("simultaneous open: the other connection stands")
	// ErrReplaced: the peer has dialled anew, so it does not have this connection any more.
	ErrReplaced = errors.New("the peer has made another connection")
	// ErrStale: a later incarnation of this node is connected to the peer. It may be a lie, or the
	// earlier process's clock was wrong: the actor tries again. A process that knows that another
	// has taken its place ends it.
	ErrStale = errors.New("a later incarnation of the node is there")
	// ErrWrongNode: another node answers at the address.
	ErrWrongNode = errors.New("another node answers")

	errClosing = errors.New("the peer is closing")
	errGone    = errors.New("the peer's request has gone")
)

// hello is the beginning of the private data between nodes with Peers: magic u16, version u8, kind
// u8, node u64, incarnation u64, number u32, in network order. What follows is the user's.
type hello struct {
	kind              helloKind
	node, incarnation uint64
	number            uint32 // of the sender's last dial
}

type helloKind uint8

const (
	helloRequest helloKind = iota // also of an Accept
	helloSimultaneous
	helloStale
	helloClosing
)

const (
	helloMagic   = 0x7EDC
	helloVersion = 1
	helloLen     = 24
)

func (h hello) put(user []byte) []byte {
	b := make([]byte, helloLen, helloLen+len(user))
	binary.BigEndian.PutUint16(b, helloMagic)
	b[2], b[3] = helloVersion, byte(h.kind)
	binary.BigEndian.PutUint64(b[4:], h.node)
	binary.BigEndian.PutUint64(b[12:], h.incarnation)
	binary.BigEndian.PutUint32(b[20:], h.number)
	return append(b, user...)
}

func parseHello(b []byte) (h hello, user []byte, ok bool) {
	if len(b) < helloLen || binary.BigEndian.Uint16(b) != helloMagic || b[2] != helloVersion || b[3] > byte(helloClosing) {
		return h, b, false
	}
	h = hello{
		helloKind(b[3]), binary.BigEndian.Uint64(b[4:]), binary.BigEndian.Uint64(b[12:]), binary.BigEndian.Uint32(b[20:]),
	}
	return h, b[helloLen:], true
}

// request is a peer's, for the link to answer.
type request struct {
	id    *actor.PID
	from  netip.Addr
	hello hello
	user  []byte
}

// host is where an address is.
func host(a rdma.Addr) netip.Addr { return a.Addr().Unmap() }

// literal is the host of an address in figures; zero: it is a name.
func literal(addr string) netip.Addr {
	ap, _ := netip.ParseAddrPort(addr)
	return ap.Addr().Unmap()
}
