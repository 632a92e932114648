package reconnect

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/asynkron/protoactor-go/actor"
	"golang.org/x/sys/unix"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/internal/fairshare"
)

// Peers is for nodes that dial each other. Of the connections that two nodes make to each other
// exactly one stays. Whichever node has dialled it, it is a generation of the reconnecting actor on
// both sides. Config.Peers and Config.Peer set the node to which a reconnecting actor connects; a
// listener whose rdma.IDConfig is Listener's brings it the node's requests, on whatever loop it
// runs. Any goroutine may use it.
//
// The rule: while both dial, the dial of the lower node id stands for a second, and the other is
// rejected, or given up, before a message could have flowed. A node that waits accepts. Dials are
// numbered within an incarnation. A request that is older than the present connection (a dial that
// was given up) is rejected. One that is newer replaces it, because the peer would not dial if it
// had that connection.
//
// Without PeersConfig.Proves the claims of a request about its node are not proved. So they have no
// effect for longer than its connection lasts, nor on a connection with another peer. A request
// from another address than that of the present connection is rejected as long as the present peer
// answers, whatever incarnation it claims: that peer is asked for a sign of life, and the request
// waits for it (rdma.Line.Challenge). A request from the node's own address (that of Config.Dial or
// of Address, or the one at which a dial was answered) replaces a connection from elsewhere, and a
// process that answers a dial at that address is taken for the node. A rejection ends no actor: it
// tries again.
//
// So an attacker that can neither receive at the node's address nor intercept packets to it cannot
// take a connection away, nor keep the node out. While the node has no connection, any machine that
// reaches the listener may pass for it until it connects. Processes behind one address (of one
// host, or of a NAT) cannot be distinguished: there the later incarnation stays, for as long as it
// is connected. A node whose machine has lost its power, and that comes back at another address or
// with an earlier incarnation, is connected when the process before has given no sign of life for
// rdma.ChallengeTime. Challenges begin at least five seconds apart; requests in between are
// rejected immediately (ErrElsewhere, ErrStale). A process that does not answer for so long,
// because an actor blocks its loop, can lose its place in this way.
//
// On secured connections PeersConfig.Proves decides which identity belongs to which node. Then only
// a peer with its identity is the node, at whatever address.
type Peers struct {
	cfg   PeersConfig
	dials atomic.Uint32 // how many dials have begun

	places   atomic.Bool // Place was called
	reminded atomic.Bool // it was logged that Place is not called

	mu        sync.Mutex
	links     map[uint64]*entry
	hints     map[uint32][]uint64 // the nodes in links, by their hints
	strangers fairshare.Shares[netip.Addr]
}

// PeersConfig configures Peers.
type PeersConfig struct {
	// Node is this node's id, which no other node has. Incarnation is larger than that of any
	// earlier process that was the node: the time of its start, or a count that is kept.
	Node, Incarnation uint64
	// Unknown is called when a node without a reconnecting actor here requests a connection. It
	// returns the PID of an actor that it has spawned for that node (with Config.Peers, and the
	// stranger's Node as Config.Peer), or nil: then the request is rejected. It is called on the
	// listener's loop and must not block. If it panics, the request is
	// rejected. nil: such requests go to the listener's owner.
	//
	// A secured connection stays on its loop, which was chosen before its peer was identified. If
	// the new actor runs on another loop, the request is rejected, and the node's next one arrives
	// on the actor's loop.
	Unknown func(Stranger) *actor.PID
	// Proves reports whether a peer with this identity may be that node. The identity is that of
	// its secured connection, "" if it has none. If not, a request that claims to be the node is
	// rejected, and a dial of the node has failed (ErrWrongIdentity). It is called on a loop and
	// must not block. If it panics, the request is rejected; if a dial was
	// answered, the reconnecting actor ends. nil: any peer that may connect may be any node.
	Proves func(identity string, node uint64) bool
	// Strangers is the limit on the number of actors that Unknown has returned: 1,024. More
	// requests of unknown nodes are rejected (ErrTooManyNodes at the peer). One address may have as
	// many of them as are left for all others. A sixteenth is for addresses that have none. An
	// address is an IPv4 address, or an IPv6 network of 64 bits. An actor that was spawned with its
	// peer's address does not count.
	Strangers int
}

// Stranger describes a node that is not known here, as its request claims.
type Stranger struct {
	Node, Incarnation uint64
	From              rdma.Addr // the address of the request
	Identity          string    // as in rdma.ConnectRequest: proved, other than the rest
	PrivateData       []byte    // the user's of the request, until Unknown returns
}

// entry is a node with a reconnecting actor.
type entry struct {
	link     *actor.PID // nil: Unknown is being called
	stranger bool       // counts as one, of from
	from     netip.Addr
}

// NewPeers makes the table of a node.
func NewPeers(cfg PeersConfig) *Peers {
	setDefault(&cfg.Strangers, defaultStrangers)
	return &Peers{cfg: cfg, links: make(map[uint64]*entry), hints: make(map[uint32][]uint64)}
}

const defaultStrangers = 1024

// Listener returns cfg for a listener of the node: its Route and Place are those of p.
func (p *Peers) Listener(cfg rdma.IDConfig) rdma.IDConfig {
	cfg.Route, cfg.Place = p.Route, p.Place
	return cfg
}

// Route passes a request from a node that has a reconnecting actor here to that actor, which
// answers it; if there is none, Unknown is called. It is for the Route of the listener's
// rdma.IDConfig, together with Place (Listener sets both). The owner of the listener gets the other
// requests: those that are from no node, and if Unknown is nil those of unknown nodes.
func (p *Peers) Route(r *rdma.ConnectRequest) (owner *actor.PID, reject *rdma.Reject) {
	h, user, ok := parseHello(r.PrivateData)
	if !ok || h.kind != helloRequest || h.node == p.cfg.Node {
		return nil, nil
	}
	if !p.mayBeNode(r.Identity, h.node) {
		return nil, p.identityReject()
	}
	link, asked, kind := p.findLink(h, r.Peer.Source())
	if asked != nil {
		link, kind = p.askUnknown(asked, Stranger{h.node, h.incarnation, r.Peer, r.Identity, user})
	}
	if link != nil || p.cfg.Unknown == nil {
		return link, nil
	}
	return nil, &rdma.Reject{PrivateData: p.newHello(kind).encodeWith(nil)}
}

// Place is for the Place of the listener's rdma.IDConfig, if connections are secured and the
// runtime has several loops: a node's connection has to be on the loop of its actor here. Without
// it requests that arrive on other loops are rejected, and dialled again, and an error is logged.
// The hint is a hash of the node's id. A peer that sends another node's hint reaches that node's
// loop, with no other effect.
func (p *Peers) Place(hint uint32) (near *actor.PID) {
	p.places.Store(true)
	p.mu.Lock()
	defer p.mu.Unlock()
	nodes := p.hints[hint]
	if len(nodes) == 0 {
		return nil
	}
	// Any of the nodes with the same hash may be meant, so they take turns. The others dial again.
	node := nodes[0]
	copy(nodes, nodes[1:])
	nodes[len(nodes)-1] = node
	return p.links[node].link
}

// nodeHint returns the hint in a node's requests; never 0.
func nodeHint(node uint64) uint32 {
	n := node * 0x9E3779B97F4A7C15 // 2^64 divided by the golden ratio: neighbours get other hashes
	return uint32(n>>32) | 1
}

func (p *Peers) enterLocked(node uint64, e *entry) {
	p.links[node] = e
	p.hints[nodeHint(node)] = append(p.hints[nodeHint(node)], node)
}

// newHello returns this node's hello. All dials with its number or a lower one, to any node, have
// begun by now.
func (p *Peers) newHello(kind helloKind) hello {
	return hello{kind, p.cfg.Node, p.cfg.Incarnation, p.dials.Load()}
}

// findLink returns the actor of a node. If there is none, Unknown is to be called, and asked is the
// entry for the answer; or kind is the reason why the node gets none.
func (p *Peers) findLink(h hello, from netip.Addr) (link *actor.PID, asked *entry, kind helloKind) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch e := p.links[h.node]; {
	case e != nil && e.link == nil: // another listener's request has arrived at the same moment
		return nil, nil, helloAgain
	case e != nil:
		return e.link, nil, helloRequest
	case p.cfg.Unknown == nil:
		return nil, nil, helloUnknown
	case !p.strangers.May(from, p.cfg.Strangers):
		return nil, nil, helloTooMany
	}
	asked = &entry{stranger: true, from: from}
	p.enterLocked(h.node, asked)
	p.strangers.Take(from)
	return nil, asked, helloRequest
}

// askUnknown calls Unknown, which is user code and may not return. The actor that it has spawned
// runs at the same time, and may have entered itself, or have ended. So may another one of this
// node.
func (p *Peers) askUnknown(asked *entry, s Stranger) (link *actor.PID, kind helloKind) {
	defer func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		switch {
		case asked.link != nil: // perhaps it has left, too
			link = asked.link
		case link == nil:
			p.dropLocked(s.Node)
		default:
			asked.link = link
		}
	}()
	return p.cfg.Unknown(s), helloUnknown
}

// enterLink enters a node's actor. known: it was spawned with the node's address. Not ok: the node
// has another actor, or is this one.
func (p *Peers) enterLink(node uint64, link *actor.PID, known bool) (ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	e := p.links[node]
	switch {
	case node == p.cfg.Node || e != nil && e.link != nil && !e.link.Equal(link):
		return false
	case e == nil:
		e = &entry{}
		p.enterLocked(node, e)
	}
	e.link = link
	if known {
		p.uncountLocked(e)
	}
	return true
}

func (p *Peers) removeLink(node uint64, link *actor.PID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if e := p.links[node]; e != nil && e.link != nil && e.link.Equal(link) {
		p.dropLocked(node)
	}
}

// uncountLocked frees e's place, if it has one, for another stranger.
func (p *Peers) uncountLocked(e *entry) {
	if e.stranger {
		e.stranger = false
		p.strangers.Free(e.from)
	}
}

func (p *Peers) dropLocked(node uint64) {
	p.uncountLocked(p.links[node])
	delete(p.links, node)
	at := nodeHint(node)
	if left := slices.DeleteFunc(p.hints[at], func(n uint64) bool { return n == node }); len(left) > 0 {
		p.hints[at] = left
	} else {
		delete(p.hints, at)
	}
}

// Why a connection of a node with Peers ends or is not made; errors.Is finds them in Down.Err.
var (
	// ErrSimultaneous: the two nodes have dialled each other, and the other connection stands.
	ErrSimultaneous = errors.New("simultaneous open: the other connection stands")
	// ErrReplaced: the peer has dialled again, so it no longer has this connection.
	ErrReplaced = errors.New("the peer has made another connection")
	// ErrStale: a later incarnation of this node is connected to the peer. The claim may be false,
	// or the earlier process's clock was wrong: the actor tries again. A process that knows that
	// another has taken its place ends it.
	ErrStale = errors.New("a later incarnation of the node is connected")
	// ErrElsewhere: the peer is connected to another process that is this node, at another address.
	// That process has answered when it was asked for a sign of life, or was asked a moment ago.
	// The actor tries again.
	ErrElsewhere = errors.New("another process of this node, at another address, is connected")
	// ErrWrongNode: another node answers at the address.
	ErrWrongNode = errors.New("another node answers")
	// ErrUnknownNode: the peer accepts no connection with this node (PeersConfig.Unknown).
	ErrUnknownNode = errors.New("the peer does not know this node")
	// ErrTooManyNodes: the peer has no place for another node that it does not know
	// (PeersConfig.Strangers).
	ErrTooManyNodes = errors.New("the peer has too many unknown nodes")
	// ErrAgain: the peer's node cannot accept the request now, as while its actor is closing.
	// errors.Is: EAGAIN.
	ErrAgain = fmt.Errorf("the peer cannot take the request now (%w)", unix.EAGAIN)
)

// hello is the beginning of the private data between nodes with Peers: magic u16, version u8, kind
// u8, node u64, incarnation u64, number u32, in network order. The user's private data follows.
type hello struct {
	kind              helloKind
	node, incarnation uint64
	number            uint32 // of the sender's dials so far
}

type helloKind uint8

const (
	helloRequest helloKind = iota // also in an Accept
	helloSimultaneous
	helloStale
	helloAgain // it may be accepted later: the peer's actor is closing, say
	helloUnknown
	helloTooMany
	helloIdentity // the identity is not that node's
	helloElsewhere
)

// asError returns the error for the dialler from a rejection of this kind. A later version may have
// others.
func (k helloKind) asError() error {
	switch k {
	case helloSimultaneous:
		return ErrSimultaneous
	case helloStale:
		return ErrStale
	case helloUnknown:
		return ErrUnknownNode
	case helloTooMany:
		return ErrTooManyNodes
	case helloIdentity:
		return ErrWrongIdentity
	case helloElsewhere:
		return ErrElsewhere
	}
	return ErrAgain
}

const (
	helloMagic   = 0x7EDC
	helloVersion = 1
	helloLen     = 24
)

// isAfter reports whether h's dial is a later one than o's, of the same incarnation. Numbers begin
// anew when there are no more.
func (h hello) isAfter(o hello) bool { return int32(h.number-o.number) > 0 }

func (h hello) encodeWith(user []byte) []byte {
	b := make([]byte, helloLen, helloLen+len(user))
	binary.BigEndian.PutUint16(b, helloMagic)
	b[2], b[3] = helloVersion, byte(h.kind)
	binary.BigEndian.PutUint64(b[4:], h.node)
	binary.BigEndian.PutUint64(b[12:], h.incarnation)
	binary.BigEndian.PutUint32(b[20:], h.number)
	return append(b, user...)
}

func parseHello(b []byte) (h hello, user []byte, ok bool) {
	if len(b) < helloLen || binary.BigEndian.Uint16(b) != helloMagic || b[2] != helloVersion {
		return h, b, false
	}
	h = hello{
		helloKind(b[3]), binary.BigEndian.Uint64(b[4:]), binary.BigEndian.Uint64(b[12:]), binary.BigEndian.Uint32(b[20:]),
	}
	return h, b[helloLen:], true
}

// hostAddr returns the IP address of a.
func hostAddr(a rdma.Addr) netip.Addr { return a.Addr().Unmap() }

// parseHost returns the host of an address in figures; zero: it is a name.
func parseHost(addr string) netip.Addr {
	a, _ := rdma.ParseAddr(addr)
	return hostAddr(a)
}
