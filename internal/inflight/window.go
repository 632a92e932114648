// Package inflight limits a connection's messages that the device has not taken yet, in number and
// in bytes, and decides which messages request a notice of progress.
package inflight

import "github.com/rdmactor/rdmactor/internal/ring"

// Amount is a number of messages and of bytes.
type Amount struct{ Messages, Bytes int }

// reaches reports whether a is as many messages as b, or as many bytes.
func (a Amount) reaches(b Amount) bool { return a.Messages >= b.Messages || a.Bytes >= b.Bytes }

func (a *Amount) add(messages, bytes int) {
	a.Messages += messages
	a.Bytes += bytes
}

// Limits configure a Window: nothing is added behind the message that reaches Most, and a notice is
// due with every one that reaches a further Part.
type Limits struct{ Most, Part Amount }

// Window is the messages that are in flight. It belongs to one goroutine, or to whatever mutex its
// owner has.
type Window struct {
	Amount // in flight
	Limits *Limits

	recent Amount            // the part of these that no notice covers yet
	parts  ring.Ring[Amount] // amounts that the due notices cover, oldest first
}

// Full reports whether nothing may be added now.
func (w *Window) Full() bool { return w.reaches(w.Limits.Most) }

// Add adds a message. notify: a notice is due with it.
func (w *Window) Add(bytes int) (notify bool) {
	w.add(1, bytes)
	w.recent.add(1, bytes)
	if notify = w.recent.reaches(w.Limits.Part); notify {
		w.parts.Push(w.recent)
		w.recent = Amount{}
	}
	return notify
}

// Noticed takes the oldest notice that is due. Not ok: none is.
func (w *Window) Noticed() (ok bool) {
	if w.parts.Len() == 0 {
		return false
	}
	part := w.parts.Pop()
	w.add(-part.Messages, -part.Bytes)
	return true
}
