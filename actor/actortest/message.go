package actortest

import (
	"fmt"
	"reflect"

	"github.com/asynkron/protoactor-go/actor"

	rdma "github.com/rdmactor/rdmactor/actor"
)

// message is a message with its sender.
type message struct {
	msg    any
	sender *actor.PID
}

// String describes a message for failures.
func (m message) String() string {
	s := typeName(reflect.TypeOf(m.msg))
	switch msg := m.msg.(type) {
	case rdma.Failure:
		s += fmt.Sprintf(" (%v)", msg)
	case *rdma.Received:
		s += fmt.Sprintf(" (%d bytes, %s)", len(msg.Data), quoteStart(msg.Data))
	case *rdma.ConnectRequest:
		s += fmt.Sprintf(" (from %v, private data %s)", msg.Peer, quoteStart(msg.PrivateData))
	case *rdma.Disconnected:
		s += fmt.Sprintf(" (%v)", msg.Err)
	case *rdma.Closed:
		s += fmt.Sprintf(" (delivered %d, unsent %d, unknown %d: %v)", msg.Delivered, msg.Unsent, msg.Unknown, msg.Err)
	}
	if m.sender != nil {
		s += " from " + m.sender.Id
	}
	return s
}

// quoteStart quotes the beginning of b.
func quoteStart(b []byte) string {
	const most = 64
	if len(b) > most {
		return fmt.Sprintf("%q...", b[:most])
	}
	return fmt.Sprintf("%q", b)
}

// typeName returns a type's name as the user of package rdma writes it.
func typeName(t reflect.Type) string {
	if t == nil {
		return "nil"
	}
	star, base := "", t
	if t.Kind() == reflect.Pointer {
		star, base = "*", t.Elem()
	}
	switch base.PkgPath() {
	case reflect.TypeFor[rdma.Received]().PkgPath(), reflect.TypeFor[rdma.Listen]().PkgPath():
		return star + "rdma." + base.Name()
	}
	return t.String()
}

// listMessages lists the first messages, a line each.
func listMessages(queue []message) string {
	const most = 8
	s := ""
	for i, m := range queue {
		if i == most {
			return s + fmt.Sprintf("\n\tand %d more", len(queue)-most)
		}
		s += "\n\t" + m.String()
	}
	return s
}
