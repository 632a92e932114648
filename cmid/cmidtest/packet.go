package cmidtest

import (
	"net/netip"
	"sync"
	"time"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/cmid/cmidtest/internal/memory"
	"github.com/rdmactor/rdmactor/internal/enum"
	"github.com/rdmactor/rdmactor/verbs"
)

// Message is a kind of message between hosts, for Drop.
type Message uint8

// The messages have InfiniBand's names. On iWARP the MPA request is MsgREQ, the MPA reply is
// MsgREP, or MsgREJ if it rejects, and the end of the stream is MsgDREQ.
const (
	msgLocal   Message = iota // work that an instance queues for itself
	MsgREQ                    // connection request
	MsgMRA                    // the request has arrived, its answer takes longer
	MsgREP                    // reply
	MsgRTU                    // ready to use
	MsgREJ                    // reject
	MsgDREQ                   // disconnect request
	MsgDREP                   // disconnect reply
	MsgSIDRREQ                // service lookup of a datagram identifier
	MsgSIDRREP                // its answer
	MsgSend                   // a Send of a queue pair
	// InfiniBand: the acknowledgement of a Send or a Write, good or bad, or the refusal of a Read
	// or an atomic
	MsgAck
	MsgWrite  // an RDMA Write
	MsgRead   // an RDMA Read
	MsgAtomic // an atomic operation
	// the bytes of a Read, or the old value of an atomic operation
	MsgReadResponse
	MsgDatagram // a Send of a datagram queue pair
	numMessages
)

var messageNames = []string{
	"local work", "MsgREQ", "MsgMRA", "MsgREP", "MsgRTU", "MsgREJ", "MsgDREQ", "MsgDREP", "MsgSIDRREQ", "MsgSIDRREP",
	"MsgSend", "MsgAck", "MsgWrite", "MsgRead", "MsgAtomic", "MsgReadResponse", "MsgDatagram",
}

// String is the constant's name.
func (m Message) String() string { return enum.At(messageNames, m, "Message(%d)") }

// MarshalText is String's text.
func (m Message) MarshalText() ([]byte, error) { return []byte(m.String()), nil }

// packet is one message from identifier to identifier, or work that an instance queues for itself.
type packet struct {
	kind     Message
	from, to endpoint
	by       *driverID // the sender, for an interceptor; nil: destroyed
	src, dst netip.Addr
	cm       *message      // of connection management; never changed once sent
	listener *binding      // MsgREQ, MsgSIDRREQ: has one more unread request
	fn       func()        // msgLocal
	data     *buffer       // MsgSend, MsgWrite, MsgReadResponse, MsgDatagram
	seq      uint64        // of the work request, or of the one that is answered
	mem      memory.Remote // MsgWrite, MsgRead, MsgAtomic; of MsgSend the key to invalidate
	flags    sendFlags     // MsgSend, MsgWrite, MsgDatagram
	imm      uint32        // valid if flagImmediate is set
	atomic   atomicOp      // MsgAtomic
	ud       datagram      // MsgDatagram
	status   ack           // MsgAck
	delay    time.Duration
	due      time.Time // when a delayed packet is handled
}

// message is the content of a message of connection management.
type message struct {
	ps       cmid.PortSpace
	src, dst cmid.Addr
	private  []byte
	param    cmid.ConnParam
	class    uint8 // MsgREQ: the traffic class
	status   int32 // MsgREJ: the reason, MsgSIDRREP: the status, MsgDREQ on iWARP: a negative errno
	err      error // MsgDREQ on iWARP: the cause
}

// sendFlags are additional duties of a message's receiver.
type sendFlags uint8

const (
	flagSolicited  sendFlags = 1 << iota
	flagInvalidate           // invalidate mem.Key
	flagImmediate            // deliver imm with it
)

// atomicOp is an atomic operation: InfiniBand's AtomicETH without the address and key.
type atomicOp struct {
	swaps      bool // compare and swap; else fetch and add
	compareAdd uint64
	swap       uint64
}

// datagram is the header of a MsgDatagram.
type datagram struct {
	to, from uint32 // queue pair numbers
	key      uint32
	group    netip.Addr // zero for a datagram to one queue pair
}

// ack is how a work request ended at the peer.
type ack uint8

const (
	ackOK     ack = iota
	ackWait       // no receive yet: the sender goes on waiting
	ackNoRecv     // and gives up
	// longer than the receive, a key that cannot be invalidated, or a misaligned address
	ackInvalid
	ackAccess // no such memory, or no right to it
	ackFault  // the peer's own mistake
)

var ackStatus = [...]verbs.Status{
	ackOK: verbs.StatusSuccess, ackWait: verbs.StatusSuccess, ackNoRecv: verbs.StatusRNRRetryExc, ackInvalid: verbs.StatusRemInvReq,
	ackAccess: verbs.StatusRemAccess, ackFault: verbs.StatusRemOp,
}

// buffer has the bytes of a message on its way. They are copied when the message leaves. So a
// queue pair that is flushed in between no longer uses the program's memory.
type buffer struct{ b []byte }

var buffers = sync.Pool{New: func() any { return new(buffer) }}

func (p *packet) release() {
	if p.data != nil {
		p.data.b = p.data.b[:0]
		buffers.Put(p.data)
		p.data = nil
	}
}

// addImmediate adds the immediate data to a completion.
func (p *packet) addImmediate(wc *verbs.WC) {
	if p.flags&flagImmediate != 0 {
		wc.HasImm, wc.Imm = true, p.imm
	}
}
