package ucm

import (
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"testing"
	"time"
)

// TestSetuidReachesLanes: setuid(2) would wait forever for a thread that no signal reaches, and
// with it the whole program. It runs in a separate process, whose credentials are its last.
func TestSetuidReachesLanes(t *testing.T) {
	if os.Getenv("UCM_SETUID") == "" {
		cmd := exec.CommandContext(t.Context(), "/proc/self/exe", "-test.run=^TestSetuidReachesLanes$")
		cmd.Env = append(os.Environ(), "UCM_SETUID=1")
		overdue := time.AfterFunc(2*time.Minute, func() { _ = cmd.Process.Kill() })
		defer overdue.Stop()
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
		return
	}
	begun, release := make(chan struct{}), make(chan struct{})
	go func() {
		lockThread()
		defer runtime.UnlockOSThread()
		close(begun)
		<-release
	}()
	<-begun
	defer close(release)
	if err := syscall.Setuid(os.Getuid()); err != nil {
		t.Fatal(err)
	}
}
