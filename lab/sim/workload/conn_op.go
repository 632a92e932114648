package workload

import (
	"fmt"
	"time"
)

// The verbs of the workload of connections. Every plan contains serve and dial.
const (
	connServe  = "serve"
	connDial   = "dial"
	connSend   = "send"   // messages, in one burst
	connPump   = "pump"   // messages, as many as possible, and more on each Writable
	connMemory = "memory" // allocate and grant
	connWrite  = "write"
	connRead   = "read"
	connAtomic = "atomic"
	connRevoke = "revoke"
	connLook   = "look" // at granted memory
	connClose  = "close"
	connDrop   = "drop"   // stop an owner, or make it panic
	connMeddle = "meddle" // commands that are not legal in the state

	connHand    = "hand over" // to another owner
	connForge   = "forge"     // a key, and use it
	connForeign = "foreign"   // commands about memory of another connection
	connLeave   = "leave"     // code of the program that panics or exits
	connCrowd   = "crowd"     // peers whose messages are retained: see drawer.drawListenerCrowd
)

// connOp is an operation of the workload of connections.
type connOp struct {
	at      time.Duration
	verb    string
	machine int // the acting one
	conn    int // number of the connection
	side    int // 0: the dialling side, 1: the accepting side
	n       int
	bytes   int
	way     int // variant of the operation

	serve  *serveSpec // of serve
	dial   *dialSpec  // of dial
	limits *limitSpec // of limits
}

// String describes the operation.
func (o connOp) String() string {
	s := fmt.Sprintf("at %v machine %d: %s", o.at, o.machine, o.verb)
	switch {
	case o.serve != nil:
		return s + " " + o.serve.String()
	case o.limits != nil:
		return fmt.Sprintf("%s of receive memory %d", s, o.limits.receive)
	case o.dial != nil:
		return fmt.Sprintf("%s connection %d, %v", s, o.conn, o.dial)
	}
	return fmt.Sprintf("%s connection %d.%d n=%d bytes=%d way=%d", s, o.conn, o.side, o.n, o.bytes, o.way)
}

// ownerKind is the kind of a connection's owner.
type ownerKind int

const (
	ownLoop    ownerKind = iota // an actor on a loop, of this connection alone
	sharedLoop                  // an actor on a loop, of several
	ownOff                      // an actor off the loops, of this connection alone
	sharedOff                   // an actor off the loops, of several
	ownHandler                  // of listeners: a Handler for each connection
	ownerKinds
)

func (k ownerKind) String() string {
	return [...]string{"loop", "shared loop", "off", "shared off", "handler"}[k]
}

// serveSpec is a listener. Its settings are also those of its connections.
type serveSpec struct {
	number int
	owner  ownerKind
	id     idSpec
}

func (s *serveSpec) String() string {
	return fmt.Sprintf("listener %d, owner %v, %v", s.number, s.owner, s.id)
}

// idSpec is the settings of an identifier. Zeros are the defaults.
type idSpec struct{ maxMessage, credits, memory int }

func (s idSpec) String() string {
	return fmt.Sprintf("(max %d, credits %d, memory %d)", s.maxMessage, s.credits, s.memory)
}

// answerKind is the answer to a request.
type answerKind int

const (
	answerAccept answerKind = iota
	answerReject
	answerLate   // accept, after a while
	answerIgnore // until the runtime rejects it
)

func (k answerKind) String() string { return [...]string{"accept", "reject", "late", "ignore"}[k] }

// dialWay is how a connection is requested.
type dialWay int

const (
	dialOwner  dialWay = iota // by its owner
	dialOther                 // by another actor, which receives the answer
	dialAsk                   // by a goroutine that waits
	dialCancel                // by a goroutine that gives up early
	dialTwice                 // step by step, with two Connects from two senders
)

func (k dialWay) String() string { return [...]string{"owner", "other", "ask", "cancel", "twice"}[k] }

// dialSpec is a connection.
type dialSpec struct {
	to       int // machine
	listener int // number of the machine's listener
	owner    ownerKind
	id       idSpec
	answer   answerKind
	late     time.Duration
	way      dialWay
	timeout  time.Duration // of dialCancel
	source   sourceKind
	behaved  bool // no operation could end or stop it
	manual   bool // its owner follows the man pages
	innocent bool // its small messages arrive soon, because none is retained
	sides    [2]sideSpec
}

func (s *dialSpec) String() string {
	b := ""
	if s.behaved {
		b = ", behaves"
	}
	if s.manual {
		b += ", manual"
	}
	return fmt.Sprintf("to machine %d listener %d%v, owner %v by %v, %v, %v%s, %v", s.to, s.listener, s.source, s.owner, s.way, s.id, s.answer, b, s.sides)
}

// sideSpec is an owner's treatment of received messages.
type sideSpec struct {
	keepOf  int           // one of so many is retained; 0: none
	keep    time.Duration // for so long
	forward int           // one of so many is forwarded; 0: none
	pass    int           // one of so many is passed to another actor, which releases it; 0: none
	block   time.Duration // off the loops: the owner is busy with each for so long
	echo    int           // one of so many is answered; 0: none
	hold    bool          // an answered one is retained until the answer is sent
	hoard   time.Duration // until then all are retained
}

// isSlow reports whether messages may wait for the owner.
func (s sideSpec) isSlow() bool {
	return s.keepOf > 0 || s.pass > 0 || s.hold || s.block > 0
}

func (s sideSpec) String() string {
	return fmt.Sprintf("{keep 1/%d for %v, forward 1/%d, pass 1/%d, block %v, echo 1/%d hold %v, hoard until %v}",
		s.keepOf, s.keep, s.forward, s.pass, s.block, s.echo, s.hold, s.hoard)
}
