//go:build vm

package nativetest

import (
	"context"
	"flag"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rdmactor/rdmactor/lab/vm"
	"github.com/rdmactor/rdmactor/lab/vm/vmtest"
)

var whole = flag.Bool("whole", false, "adapter test runs the whole conformance suite, which TestConformance does, too")

// step is a command of a user who tries an adapter.
type step struct {
	why, script string
	code        int
	wants       []string
	limit       time.Duration
}

// steps returns the commands that a new user would run on a device, and their outcome when
// something is missing.
func steps(kind string) []step {
	groups := "--groups 'connect|data|remote.access|atomics'"
	if *whole {
		groups = ""
	}
	device := kind + "0"
	addr := map[string]string{"rxe": "10.10.1.1", "siw": "10.10.2.1"}[kind]
	netdev := map[string]string{"rxe": "rx0", "siw": "sw0"}[kind]
	atomics := map[string]string{"rxe": "atomics           1       0       0", "siw": "the device has none"}[kind]
	driver := "lib" + kind + "-rdmav"
	return []step{
		{"a healthy machine", "adapter doctor", 0, []string{
			device + ": usable, by uverbs, " + addr, "driver " + kind + ", ", "/dev/infiniband/rdma_cm", "port 1: ACTIVE", ", " + netdev + " with MTU ",
			"queue pairs", "libibverbs.so.1", driver,
		}, time.Minute},
		{"as JSON", "adapter doctor --json", 0, []string{`"usable": true`, `"data_path": "uverbs"`, `"driver": "` + kind + `"`}, time.Minute},
		{"messages", "adapter test --libibverbs --suite loopback " + device, 0, []string{
			device + ": usable, by libibverbs", "Loopback", "many connections", atomics, "left behind: nothing", "please send the report", "/issues",
		}, 5 * time.Minute},
		{"the suite", "adapter test --libibverbs --suite conformance " + groups + " " + addr, 0, []string{"Conformance", "left behind: nothing"}, 20 * time.Minute},
		{"no driver of the library's", "mv /etc/libibverbs.d /etc/away; adapter test --libibverbs " + device + "; code=$?; mv /etc/away /etc/libibverbs.d; exit $code", 1, []string{
			"libibverbs.so.1: has no driver for " + device + ", only for 0 other devices: no such device\n", "> install the drivers (ibverbs-providers",
		}, time.Minute},
		{"no library", "lib=$(find / -xdev -name libibverbs.so.1 | head -n 1); mv $lib /away; adapter doctor; code=$?; mv /away $lib; exit $code", 0, []string{
			"libibverbs cannot be used: libibverbs.so.1: ", "> install it: Debian and Ubuntu", device + ": usable, by uverbs",
		}, time.Minute},
		{"no device file", "cd /dev/infiniband; mv rdma_cm away; adapter doctor; code=$?; mv away rdma_cm; exit $code", 1, []string{
			"connections cannot be made: open /dev/infiniband/rdma_cm: no such file", "run udev",
		}, time.Minute},
		{"a link that is down", "ip link set " + netdev + " down; adapter doctor; ip link set " + netdev + " up", 0, []string{
			device + ": not usable", device + " has no active port: port 1 is DOWN", "ip link set " + netdev + " up",
		}, time.Minute},
	}
}

// stranger runs the steps on the devices.
func stranger(t *testing.T, b *vmtest.Bench, kind string) {
	err := b.Try(t, func(m *vm.Machine) error {
		file, err := vmtest.Compile(t.Context(), "build", "github.com/rdmactor/rdmactor/native/adapter")
		if err == nil {
			err = m.Put(t.Context(), file, "/usr/bin/adapter")
		}
		if err != nil {
			return err
		}
		for _, s := range steps(kind) {
			begun := time.Now()
			ctx, stop := context.WithTimeoutCause(t.Context(), s.limit, fmt.Errorf("no end within %s", s.limit))
			r, err := m.Run(ctx, s.script)
			stop()
			if err != nil {
				return fmt.Errorf("%s: %w", s.why, err)
			}
			t.Logf("%s, after %v: %s\n%s", s.why, time.Since(begun).Round(100*time.Millisecond), s.script, r.Output)
			if r.Code != s.code {
				t.Errorf("%s: the status is %d, want %d", s.why, r.Code, s.code)
			}
			for _, want := range s.wants {
				if !strings.Contains(r.Output, want) {
					t.Errorf("%s: it does not say %q", s.why, want)
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}
