package cmidtest

import "github.com/rdmactor/rdmactor/internal/enum"

// Message is a kind of message between hosts, for Drop.
type Message uint8

// The messages, in InfiniBand's terms. On iWARP the MPA request and reply are MsgREQ and MsgREP
// (MsgREJ with the reject bit), the end of the stream is MsgDREQ.
const (
	msgLocal   Message = iota // work that an instance leaves itself
	MsgREQ                    // connection request
	MsgMRA                    // the request has come, its answer takes longer
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
	// the bytes that a Read asked for, or what an atomic operation has found
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
