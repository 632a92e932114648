package core_test

import (
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/internal/iwarp/core"
	"github.com/rdmactor/rdmactor/internal/iwarp/wire"
)

// TestSilenceInMessage: a peer may be silent between messages for as long as it likes, but in the
// middle of one it occupies a receive.
func TestSilenceInMessage(t *testing.T) {
	first := fpdu(wire.Header{Opcode: wire.OpSend, MSN: 1}, []byte("half of it, ")...)
	for where, b := range map[string][]byte{
		"in an FPDU's length":        first[:1],
		"in a payload":               first[:25],
		"between two segments":       first,
		"between segments of Writes": fpdu(wire.Header{Tagged: true, Opcode: wire.OpWrite, STag: 7}),
	} {
		t.Run(where, func(t *testing.T) {
			_, s := connect(t, core.Config{}, core.Config{MessageTimeout: 10 * time.Second})
			s.postRecv(1, 64)
			s.at(time.Hour)
			s.c.Timeout(s.now)
			if s.closed > 0 {
				t.Fatal("ended in silence between messages")
			}
			s.input(b, whole)
			s.at(time.Hour + 9*time.Second)
			s.input(nil, whole)
			s.c.Timeout(s.now)
			if s.closed > 0 {
				t.Fatal("ended before its time")
			}
			s.fire("silence", time.Hour+10*time.Second)
			wantErrno(t, "silent for too long", s.err, unix.ETIMEDOUT)
			if _, closeNow := s.c.WantClose(); !closeNow {
				t.Error("the socket is kept")
			}
			s.wantDone("its receive", "r1:work request flushed/0")
		})
	}
	t.Run("every byte counts", func(t *testing.T) {
		_, b := connect(t, core.Config{}, core.Config{MessageTimeout: 10 * time.Second})
		b.postRecv(1, 64)
		whole := send(1, "all of it")
		for i := range whole {
			b.at(time.Duration(i) * 9 * time.Second)
			b.c.Timeout(b.now)
			b.c.Input(b.now, whole[i:i+1])
		}
		b.wantDone("a byte every 9 s", "r1:success/9")
		if at, armed := b.c.Deadline(); armed {
			t.Errorf("a deadline at %v with nothing half here", at)
		}
	})
}
