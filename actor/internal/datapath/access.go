package datapath

import (
	"fmt"

	"github.com/rdmactor/rdmactor/actor/internal/secure"
	"github.com/rdmactor/rdmactor/verbs"
)

// The peer of a secured connection is unauthenticated until its handshake is done, and its queue
// pair is in the domain of its owner's memory by then. So until then the queue pair lets it reach
// nothing, if the device can do that. Where there is no owner's memory, nothing is open to the peer
// before the first messages have come and gone, and so nothing has to be kept from it.
//
// The peer may use memory as soon as it knows that this side has agreed. So the side that has
// connected lets its peer in before its request leaves: it knows who the peer is, and the peer
// answers to that. The other side does so before its accept leaves, when its owner has decided.

// guardsMemory reports whether the peer has to be kept from memory, and let in.
func (s *security) guardsMemory() bool {
	return s != nil && s.c.res.area != nil && s.c.Device.attr.QPAccess
}

// shutOut denies the peer access to memory: it is not authenticated yet.
func (s *security) shutOut() error {
	if !s.guardsMemory() {
		return nil
	}
	if err := s.c.QP.SetAccess(0); err != nil {
		return fmt.Errorf("modify_qp on %s: the peer cannot be kept from memory: %w", s.c.Device.Verbs.Name(), err)
	}
	return nil
}

// letIn allows the peer access to memory.
func (s *security) letIn() error {
	if !s.guardsMemory() {
		return nil
	}
	if err := s.c.QP.SetAccess(verbs.RemoteRead | verbs.RemoteWrite | verbs.RemoteAtomic); err != nil {
		return &secure.HandshakeError{What: "modify_qp on " + s.c.Device.Verbs.Name() + ": the peer cannot be let in", Err: err}
	}
	return nil
}
