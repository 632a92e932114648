//go:build vm

package vm_test

import (
	"bufio"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rdmactor/rdmactor/lab/vm"
	"github.com/rdmactor/rdmactor/lab/vm/vmtest"
)

const minute = time.Minute

func TestKernels(t *testing.T) {
	for _, kernel := range vm.Kernels {
		t.Run(kernel, func(t *testing.T) {
			shared := t.TempDir()
			if err := os.WriteFile(filepath.Join(shared, "file"), []byte("from outside\n"), 0o644); err != nil {
				t.Fatal(err)
			}
			m := vmtest.Boot(t, vm.Config{Kernel: kernel, Share: map[string]string{"/share": shared}, Forward: map[int]int{7: 0}})
			for _, test := range []struct {
				name string
				run  func(*testing.T, *vm.Machine)
			}{
				{"the kernel is what was asked for", func(t *testing.T, m *vm.Machine) { theKernel(t, m, kernel) }},
				{"the devices are active", devices},
				{"the environment says the truth", environment},
				{"exit codes come back", exitCodes},
				{"output is whole beside a noisy console", output},
				{"what runs in the background holds up nobody", background},
				{"what takes too long is an error", tooLong},
				{"shared directories are read-only", share},
				{"nothing leaves the machine", closed},
				{"a forwarded port leads in", forward},
				{"rping over rxe", func(t *testing.T, m *vm.Machine) { rping(t, m, "rxe") }},
				{"rping over siw", func(t *testing.T, m *vm.Machine) { rping(t, m, "siw") }},
				{"hosts are joined", hosts},
				{"Go tests run", goTests},
			} {
				t.Run(test.name, func(t *testing.T) { test.run(t, m) })
			}
		})
	}
}

func theKernel(t *testing.T, m *vm.Machine, kernel string) {
	got := strings.TrimSpace(vmtest.Run(t, m, minute, "uname -r"))
	if got != m.Release || !strings.HasPrefix(got, kernel+".") {
		t.Errorf("uname -r says %s, the image %s, asked for was %s", got, m.Release, kernel)
	}
}

func devices(t *testing.T, m *vm.Machine) {
	links := vmtest.Run(t, m, minute, "rdma link show")
	for _, want := range []string{"link rxe0/1 state ACTIVE", "link siw0/1 state ACTIVE"} {
		if !strings.Contains(links, want) {
			t.Errorf("no %q in:\n%s", want, links)
		}
	}
	if got := vmtest.Run(t, m, minute, "ibv_devices"); !strings.Contains(got, "rxe0") || !strings.Contains(got, "siw0") {
		t.Errorf("libibverbs sees:\n%s", got)
	}
	vmtest.Run(t, m, minute, "test -c /dev/infiniband/rdma_cm && test -c /dev/infiniband/uverbs0 && test -c /dev/infiniband/uverbs1")
}

// environment compares the variables with the kernel's data about the addresses in them.
func environment(t *testing.T, m *vm.Machine) {
	for _, kind := range []string{"rxe", "siw"} {
		inGuest := vmtest.Run(t, m, minute, "env -i /bin/sh -c '. /etc/"+kind+".env; /usr/bin/env' | grep ^RDMA_")
		for _, v := range vm.Env(kind) {
			if !strings.Contains(inGuest, v+"\n") {
				t.Errorf("vm.Env has %s, the guest:\n%s", v, inGuest)
			}
		}
		vmtest.Run(t, m, minute, ". /etc/"+kind+`.env
set -ex
[ $RDMA_KIND = `+kind+` ]
rdma link show $RDMA_DEVICE/1 | grep "netdev $RDMA_NETDEV "
ip addr show dev $RDMA_NETDEV | grep "inet $RDMA_ADDR/"
ip addr show dev $RDMA_NETDEV | grep "inet $RDMA_ADDR2/"
ip neigh show $RDMA_SILENT_ADDR dev $RDMA_NETDEV | grep PERMANENT
ip route get $RDMA_NOARP_ADDR | grep "dev $RDMA_NETDEV "
plain=$(ip -o addr show to $RDMA_PLAIN_ADDR | cut -d' ' -f2)
[ -n "$plain" ]
! rdma link | grep "netdev $plain "
! ping -c 1 -W 1 $RDMA_SILENT_ADDR
! ping -c 1 -W 1 $RDMA_NOARP_ADDR
`)
	}
}

func exitCodes(t *testing.T, m *vm.Machine) {
	for script, want := range map[string]int{"exit 0": 0, "exit 7": 7, "kill -SEGV $$": 128 + 11, "no-such-program": 127} {
		r, err := m.Run(t.Context(), script)
		if err != nil || r.Code != want {
			t.Errorf("%s: exit code %d, %v, want %d; output %q", script, r.Code, err, want, r.Output)
		}
	}
}

func output(t *testing.T, m *vm.Machine) {
	vmtest.Run(t, m, minute, "head -c 5000000 /dev/urandom >/tmp/bytes")
	got := vmtest.Run(t, m, minute, "(for i in $(seq 200); do echo \"<0>noise $i\" >/dev/kmsg; done) & cat /tmp/bytes; wait")
	want := strings.Fields(vmtest.Run(t, m, minute, "sha256sum /tmp/bytes; rm /tmp/bytes"))[0]
	if sum := fmt.Sprintf("%x", sha256.Sum256([]byte(got))); sum != want {
		t.Errorf("%d bytes arrived with the sum %s, in the guest it is %s", len(got), sum, want)
	}
}

func background(t *testing.T, m *vm.Machine) {
	got := vmtest.Run(t, m, minute, "(sleep 1000; echo late) & echo $! >/tmp/pid; echo early")
	if got != "early\n" {
		t.Errorf("the output is %q", got)
	}
	vmtest.Run(t, m, minute, "kill $(cat /tmp/pid)") // fails if the process has not continued
}

func tooLong(t *testing.T, m *vm.Machine) {
	late := errors.New("too late")
	ctx, stop := context.WithTimeoutCause(t.Context(), 10*time.Second, late)
	defer stop()
	r, err := m.Run(ctx, "echo begun; (sleep 1234; echo) ; echo not reached")
	if !errors.Is(err, late) || r.Output != "begun\n" || r.Code != 128+9 {
		t.Errorf("error %v, output %q, exit code %d", err, r.Output, r.Code)
	}
	if got := vmtest.Run(t, m, minute, "ps | grep 'sleep 123[4]' || echo none"); got != "none\n" {
		t.Errorf("the process group was not killed: %s", got)
	}
}

func share(t *testing.T, m *vm.Machine) {
	if got := vmtest.Run(t, m, minute, "cat /share/file; touch /share/x 2>/dev/null && echo written || true"); got != "from outside\n" {
		t.Errorf("the shared directory: %q", got)
	}
}

func closed(t *testing.T, m *vm.Machine) {
	r, err := m.Run(t.Context(), "ip route get 192.0.2.1; ip -6 route get 2001:db8::1; ip route show default; ip -6 route show default")
	if err != nil || strings.Contains(r.Output, "dev ") {
		t.Errorf("there is a way out: %v\n%s", err, r.Output)
	}
}

func forward(t *testing.T, m *vm.Machine) {
	server, err := m.Start("exec nc -l -p 7 -e echo from inside")
	if err != nil {
		t.Fatal(err)
	}
	vmtest.Run(t, m, minute, "until ss -ltn | grep -q :7; do sleep 0.1; done")
	conn, err := net.Dial("tcp", m.Forwarded(7))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(minute)); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(conn).ReadString('\n'); line != "from inside\n" {
		t.Errorf("%s answers %q, %v", m.Forwarded(7), line, err)
	}
	ctx, stop := context.WithTimeout(t.Context(), minute)
	defer stop()
	if r, err := server.Wait(ctx); err != nil {
		t.Errorf("the server: %v, %+v", err, r)
	}
}

func rping(t *testing.T, m *vm.Machine, kind string) {
	got := vmtest.Run(t, m, minute, ". /etc/"+kind+`.env
rping -s -a $RDMA_ADDR -C 5 &
until rdma resource show cm_id | grep -q LISTEN; do sleep 0.1; done
rping -c -a $RDMA_ADDR -C 5 -v && wait $!`)
	if !strings.Contains(got, "ping data: rdma-ping-4") {
		t.Errorf("rping ended well but without its fifth ping:\n%s", got)
	}
}

func hosts(t *testing.T, m *vm.Machine) {
	vmtest.Run(t, m, minute, "rig-hosts siw 3")
	got := vmtest.Run(t, m, minute, `ip netns exec h1 rping -s -a 10.10.20.1 -C 3 &
until ip netns exec h1 rdma resource show cm_id | grep -q LISTEN; do sleep 0.1; done
ip netns exec h3 rping -c -a 10.10.20.1 -C 3 -v && wait $!`)
	if !strings.Contains(got, "ping data: rdma-ping-2") {
		t.Errorf("rping between namespaces:\n%s", got)
	}
}

func goTests(t *testing.T, m *vm.Machine) {
	vmtest.GoTest(t, m, "github.com/rdmactor/rdmactor/lab/vm/wire", vm.Env("rxe"), "-test.run=OutOfStep")
}

func TestPanicIsReported(t *testing.T) {
	for _, kernel := range vm.Kernels {
		t.Run(kernel, func(t *testing.T) {
			m := vmtest.Boot(t, vm.Config{Kernel: kernel})
			ctx, stop := context.WithTimeout(t.Context(), minute)
			defer stop()
			r, err := m.Run(ctx, "echo said before; sleep 5; echo c >/proc/sysrq-trigger; sleep 100")
			if !errors.Is(err, vm.ErrDied) || r.Output != "said before\n" {
				t.Fatalf("error %v, result %+v", err, r)
			}
			for _, want := range []string{"sysrq triggered crash", "Call Trace", "said before", "echo c >/proc/sysrq-trigger"} {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("no %q in the error:\n%v", want, err)
				}
			}
			if _, err := m.Run(ctx, "true"); !errors.Is(err, vm.ErrDied) {
				t.Errorf("a command after the machine's end: %v", err)
			}
		})
	}
}
