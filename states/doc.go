// Package states is the state machine of an rdma_cm_id as data: for a transport and a port space,
// it maps a state and an input to the next state and a verdict. One table guards the actors and
// drives the embedded device. It is compared with the kernel's behaviour. The diagram in
// docs/states.md is drawn from it, and errors explain a refusal with its help (Why).
//
// Three kinds of input move an identifier. Requested judges a command before the device sees it;
// when it is allowed, the next state applies immediately. CommandFailed enters the state in which a
// failed command leaves the identifier. Occurred judges an event:
//
//	s, v := states.Step(f, s, states.Requested(states.OpConnect))           // route-resolved -> connecting
//	s, v = states.Step(f, s, states.Occurred(states.KindRejected))          // connecting -> failed
//
// # Ownership
//
// Everything is a value. The tables are built when the program starts and never change, so all
// functions may be called from any goroutine; an identifier's state belongs to the code that drives
// the identifier. Returned slices belong to the caller.
//
// # Ordering
//
// Step knows neither clock nor history. One command at a time may be in progress per identifier.
// Events may overtake its outcome. An outcome or event for which the identifier is no longer in the
// right state changes nothing. Two commands connect without an event: Establish, and Accept of a
// datagram request. An Established after them is a duplicate. The end of an identifier is final:
// Failed is left only towards Removed and Destroying, Removed only towards Destroying, Destroying
// not at all.
//
// # Errors
//
// A command is refused with the kernel's errno (Refuse) or with EINVAL where the kernel would do
// harm (Guard); Why returns the reason, the alternative and the manual page. Nothing panics:
// numbers out of range are refused or ignored.
//
// # Limitations
//
// The table knows states, not arguments: addresses, timeouts and private data are judged by the
// device. It is stricter than the kernel where Step returns Guard. It also differs from the kernel
// in these points:
//
//   - Where both a command and an event report one change (SetIBPath, NotifyCommEst, Accept and
//     Disconnect on iWARP), the state changes with the event.
//   - A Reject that fails leads to Failed (package cmid then restores the state before the Reject).
//   - An Unreachable while connecting leads to Failed, although the kernel may go on.
//   - A route that fails after AddrInfoResolved leads to AddrResolved.
package states
