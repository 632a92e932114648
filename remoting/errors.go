package remoting

import (
	"errors"
	"fmt"

	"github.com/asynkron/protoactor-go/actor"
	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/internal/plain"
)

// Why messages are not delivered; errors.Is finds them in *Refused, *Unknown and *Disconnected.
var (
	// ErrQueueFull: Config.Queue bytes wait for the peer. errors.Is: ENOBUFS.
	ErrQueueFull = fmt.Errorf("too much waits for the peer (%w)", unix.ENOBUFS)
	// ErrTooLarge: the message is larger than the peer takes, or than Config.Queue. errors.Is:
	// EMSGSIZE.
	ErrTooLarge = fmt.Errorf("the message is too large for the peer, or the queue (%w)", unix.EMSGSIZE)
	// ErrEncode: the codec could not encode the message. errors.Is: EINVAL.
	ErrEncode = fmt.Errorf("the message cannot be encoded (%w)", unix.EINVAL)
	// ErrDecode: the codec could not decode the message, or does not know its type. errors.Is:
	// EBADMSG.
	ErrDecode = fmt.Errorf("the message cannot be decoded (%w)", unix.EBADMSG)
	// ErrDenied: the receiving node does not expose that (Expose). errors.Is: EACCES.
	ErrDenied = fmt.Errorf("not exposed (%w)", unix.EACCES)
	// ErrOverflow: the target does not consume its messages. errors.Is: ENOBUFS.
	ErrOverflow = fmt.Errorf("the target does not consume what it gets (%w)", unix.ENOBUFS)
	// ErrUnreachable: the peer was not connected for Config.Patience, or could not be connected.
	// errors.Is: EHOSTUNREACH.
	// Why the last attempt has failed is in it, too.
	ErrUnreachable error = unreachableError{}
	// ErrTooManyPeers: there are already Config.Peers of them. errors.Is: EMFILE.
	ErrTooManyPeers = fmt.Errorf("too many peers (%w)", unix.EMFILE)
	// ErrShutdown: this node was shut down. errors.Is: ESHUTDOWN.
	ErrShutdown = fmt.Errorf("the node was shut down (%w)", unix.ESHUTDOWN)
	// ErrBlocked: Config.Admit has refused the peer, or the peer's has refused this node.
	// errors.Is: EACCES.
	ErrBlocked = fmt.Errorf("the node may not connect (%w)", unix.EACCES)
	// ErrProtocol: the peer has sent what no node sends, or has another version. errors.Is:
	// EPROTO.
	ErrProtocol = fmt.Errorf("the peer has broken the protocol (%w)", unix.EPROTO)
	// ErrPeerShutdown: the peer was shut down. errors.Is: ESHUTDOWN.
	ErrPeerShutdown = fmt.Errorf("the peer was shut down (%w)", unix.ESHUTDOWN)
	// ErrStarted: the actor system is a node already, or has Proto.Actor's remote, which would get
	// the messages. errors.Is: EALREADY.
	ErrStarted = fmt.Errorf("the actor system is a node already, or has another remote (%w)", unix.EALREADY)
	// ErrSpawn: the actor was not spawned; in it is why: ErrDenied, actor.ErrNameExists,
	// ErrUnreachable, or the peer's reason.
	ErrSpawn = errors.New("the peer has not spawned the actor")
	// ErrNotRemote: the PID, or the address, is this node's own. errors.Is: EINVAL.
	ErrNotRemote = fmt.Errorf("the address is this node's own, or empty (%w)", unix.EINVAL)
)

// unreachableError is ErrUnreachable. Its text leaves out the errno's ("no route to host"), which
// would be read as the cause.
type unreachableError struct{}

func (unreachableError) Error() string { return "the peer cannot be reached" }

func (unreachableError) Unwrap() error { return unix.EHOSTUNREACH }

// Unknown replaces the answer to a future if it is unknown whether its request was received: it was
// sent, and the link ended before the answer came. It is an error. The request is never repeated,
// because the peer may have carried it out. See Result.
type Unknown struct {
	Target *actor.PID // of the request; without an Id if it was a Spawn
	Err    error      // why the link has ended; nil: the peer has ended it in order
}

// Error names the request and the cause.
func (u *Unknown) Error() string {
	who := plain.Quote(u.Target.Address)
	if u.Target.Id != "" { // else of a Spawn
		who = plain.Quote(u.Target.Id) + " at " + who
	}
	return fmt.Sprintf("not known whether %s got the request: the link has ended%s", who, causeText(u.Err))
}

// causeText returns a text about an end, to be appended to another one.
func causeText(err error) string {
	if err == nil {
		return " in order"
	}
	return ": " + err.Error()
}

// Unwrap gives the cause.
func (u *Unknown) Unwrap() error { return u.Err }

// Refused reports a message that was not delivered, with the reason: to a future in place of an
// answer, to an actor that has sent the message (Config.Overflow), and as an event. It is an error.
type Refused struct {
	Target *actor.PID // whom the message was for
	Sender *actor.PID // the sender; nil: none, or unknown
	By     string     // the name of the node that has refused it
	Err    error
}

// Error names the message and the reason.
func (r *Refused) Error() string {
	return fmt.Sprintf("a message for %s at %s was refused by %s: %v", plain.Quote(r.Target.GetId()), plain.Quote(r.Target.GetAddress()), plain.Quote(r.By), r.Err)
}

// Unwrap gives the cause.
func (r *Refused) Unwrap() error { return r.Err }

// Result is the result of a future whose request may have gone to another node. A substitute for an
// answer (*Unknown, *Refused) is returned as the error.
func Result(f actor.Future) (any, error) {
	res, err := f.Result()
	if err != nil {
		return nil, err
	}
	switch res := res.(type) {
	case *Unknown:
		return nil, res
	case *Refused:
		return nil, res
	}
	return res, nil
}
