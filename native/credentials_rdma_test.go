//go:build linux && rdma

package native

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/internal/kernelrig"
	"github.com/rdmactor/rdmactor/verbs"
)

// TestChangedCredentials: when the process has changed its credentials, the kernel refuses the
// sends that the driver announces. The device is given up, and its error states the cause and a
// remedy.
func TestChangedCredentials(t *testing.T) {
	if kernelrig.Env(t, "RDMA_KIND") == "siw" {
		t.Skip("siw's queue pairs are connected by the connection manager only")
	}
	if !child() {
		again(t, func(*exec.Cmd) {})
		return
	}
	x := newPair(t, Provider{})
	x.pingPong(1)
	var ready, done sync.WaitGroup
	ready.Add(8)
	for range 8 { // threads, each of which gets separate credentials
		done.Go(func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			ready.Done()
			ready.Wait()
		})
	}
	done.Wait()
	x.must(syscall.Setuid(os.Getuid()))
	x.left = 1
	x.send(x.a)
	for range 3 {
		x.must(x.loop.Turn())
	}
	_, err := x.dev.CreateCQ(1, func() {})
	var c *verbs.CredentialsError
	if !errors.As(err, &c) || c.File != filepath.Base(theFile(t)) {
		t.Fatalf("%v, want a CredentialsError of the device's file", err)
	}
	wants(t, err, unix.EACCES, "exec")
}
