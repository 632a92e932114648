package mailbox

// Lane is a message's place in the order in which an actor gets its waiting messages.
type Lane uint8

// The lanes, first served first; FIFO inside each.
const (
	Lifecycle Lane = iota // Proto.Actor's system messages
	Event                 // a device's reports: an end must not queue behind a thousand requests
	Control               // what ends an actor from outside: a cancellation, a shutdown
	Data                  // whatever actors send each other, in one order
	lanes
)

// Laned is implemented by messages that do not belong to the data lane.
type Laned interface{ Lane() Lane }

// Retained is a message that has something (a receive buffer, a credit) until all its receivers
// are finished with it. Each place in a queue is a separate reference: so an actor may forward it,
// to any number of others. Config.Retained finds it out.
type Retained interface {
	// Retain takes a reference. Any goroutine that has the message.
	Retain()
	// Delivered notes that it no longer waits: it is received now, or answered.
	Delivered()
	// Release releases one reference, on loop l (nil: off the loops): after Receive has returned
	// or panicked, or after the message was answered. An error is the failure of an actor that has
	// released more references than it had.
	Release(l *Loop) error
}

// Config describes the messages of a mailbox's actor. The zero value is that of an actor with an
// unbounded mailbox whose messages have no references. Any number of mailboxes may share one; it
// does not change.
type Config struct {
	// Retained returns msg, without its envelope, as a message with references; nil: it has none.
	// A nil function: none does.
	Retained func(msg any) Retained
	// Carried returns the content of msg, without its envelope, if msg only carries it: the
	// watchdog names the content. It gives msg itself for all others. nil: none carries anything.
	Carried func(msg any) any
	// Limit bounds the data lane; 0: nothing does. Messages beyond it go to the mailbox's Policy,
	// which it must have.
	Limit int32
	// Last is posted when the actor has stopped, behind everything that waits: Policy.Leftover gets
	// it when it has got all that was sent before. nil: nothing is posted.
	Last any
	// PoisonPill takes the place of a PoisonPill. nil: it stops the actor, as Proto.Actor has it.
	PoisonPill any
}

// Policy decides about messages that an actor will not receive.
type Policy interface {
	// Overflow is asked on the posting goroutine about a message that would be the over-th beyond
	// Limit. It has answered the message, or admits it: to its place in the data lane, so that a
	// sender's order is kept.
	Overflow(msg any, over int32) (admit bool)
	// Leftover answers a message that the stopped actor will not get, as it was posted (in its
	// envelope), where the actor ran. Without a Policy its sender gets the answer of a dead
	// actor's PID, *actor.DeadLetterResponse.
	Leftover(msg any)
}
