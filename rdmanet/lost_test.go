package rdmanet

import (
	"errors"
	"io"
	"testing"

	"golang.org/x/sys/unix"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/actor/actortest"
)

// If the peer was killed, a stream does not end with io.EOF, which stands for a FIN: bytes may be
// missing.
func TestTwinPeerIsKilled(t *testing.T) {
	inWorlds(t, func(w *actortest.World, rt *rdma.Runtime, l *Listener) {
		client, server := joined(w, rt, l)
		if _, err := client.Write([]byte("to be conti")); err != nil {
			t.Fatal(err)
		}
		w.Wait()
		w.Crash("far")
		got, err := io.ReadAll(server)
		if string(got) != "to be conti" || !errors.Is(err, rdma.ErrPeerLost) || !errors.Is(err, unix.ECONNRESET) || errors.Is(err, io.EOF) {
			t.Errorf("read %q, %v", got, err)
		}
		if _, err := server.Write([]byte("what?")); !errors.Is(err, rdma.ErrPeerLost) {
			t.Errorf("written: %v", err)
		}
	})
}
