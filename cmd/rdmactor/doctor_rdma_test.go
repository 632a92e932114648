//go:build linux && rdma

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/internal/doctor"
)

// TestKernelDoctor: the machine's device is complete, opened without libibverbs, and usable.
func TestKernelDoctor(t *testing.T) {
	var out bytes.Buffer
	if err := runDoctor(t.Context(), []string{"--json"}, &out); err != nil {
		t.Fatalf("%v: %s", err, out.Bytes())
	}
	var r doctor.Report
	if err := json.Unmarshal(out.Bytes(), &r); err != nil {
		t.Fatal(err)
	}
	name, kind, netdev := os.Getenv("RDMA_DEVICE"), os.Getenv("RDMA_KIND"), os.Getenv("RDMA_NETDEV")
	i := slices.IndexFunc(r.Devices, func(d doctor.Device) bool { return d.Name == name })
	if i < 0 || !r.Usable {
		t.Fatalf("no %s, or it is not usable: %s", name, out.Bytes())
	}
	d := r.Devices[i]
	if !d.Usable || d.Path != "uverbs" || d.Driver != kind || d.NodeGUID == "" || d.File == "" || !slices.Contains(d.Addresses, os.Getenv("RDMA_ADDR")) ||
		d.Limits == nil || d.Limits.QueuePairs == 0 || d.Limits.CompletionQueues == 0 || d.Limits.MemoryRegions == 0 ||
		len(d.Ports) != 1 || d.Ports[0].State != "ACTIVE" || d.Ports[0].Netdev != netdev || d.Ports[0].MTU == 0 || len(d.Ports[0].GIDs) == 0 {
		t.Errorf("%s", out.Bytes())
	}
	if r.CM.Error != "" || !slices.Contains(r.Modules, "rdma_ucm") {
		t.Errorf("%+v, modules %q", r.CM, r.Modules)
	}
}

// seen returns the report of this machine, and its device.
func seen(t *testing.T) (r doctor.Report, d doctor.Device) {
	t.Helper()
	var out bytes.Buffer
	if err := runDoctor(t.Context(), []string{"--json"}, &out); err != nil && !errors.Is(err, doctor.ErrUnusable) {
		t.Fatalf("%v: %s", err, out.Bytes())
	}
	if err := json.Unmarshal(out.Bytes(), &r); err != nil {
		t.Fatal(err)
	}
	for _, d = range r.Devices {
		if d.Name == os.Getenv("RDMA_DEVICE") {
			return r, d
		}
	}
	t.Fatalf("no %s: %s", os.Getenv("RDMA_DEVICE"), out.Bytes())
	return r, d
}

// TestKernelDoctorWithoutGUID: a device without a node GUID, as an SR-IOV function is at first, is
// still found by its addresses.
func TestKernelDoctorWithoutGUID(t *testing.T) {
	shell(t, "modprobe nodeguid devices=rxe0,siw0")
	defer shell(t, "rmmod nodeguid")
	if _, d := seen(t); !d.Usable || strings.Trim(d.NodeGUID, "0:") != "" || !slices.Contains(d.Addresses, os.Getenv("RDMA_ADDR")) {
		t.Errorf("%+v", d)
	}
}

func shell(t *testing.T, script string) {
	t.Helper()
	if out, err := exec.Command("sh", "-c", script).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v: %s", script, err, out)
	}
}

// TestKernelDoctorLimited: the file of a control group whose limit is too low is named, with its
// value. CAP_IPC_LOCK in a user namespace does not lift RLIMIT_MEMLOCK.
func TestKernelDoctorLimited(t *testing.T) {
	const dir = "/sys/fs/cgroup/doctor"
	if file, said := os.Getenv("DOCTOR_LIMIT"), os.Getenv("DOCTOR_SAYS"); file != "" {
		if err := os.WriteFile(dir+"/cgroup.procs", []byte("0"), 0o644); err != nil && file != "memlock" {
			t.Fatal(err)
		}
		r, _ := seen(t)
		if !slices.ContainsFunc(r.Missing, func(m doctor.Missing) bool { return strings.Contains(m.What, said) }) {
			t.Errorf("want %q: %+v", said, r.Missing)
		}
		if file == "memlock" && r.Limits.MayLock {
			t.Error("may_lock, in a user namespace")
		}
		return
	}
	shell(t, "[ -f /sys/fs/cgroup/cgroup.procs ] || mount -t cgroup2 none /sys/fs/cgroup; echo '+rdma +pids' > /sys/fs/cgroup/cgroup.subtree_control; mkdir "+dir)
	device := os.Getenv("RDMA_DEVICE")
	// Removing a group that still has a limit crashes the kernel when the device is removed.
	defer shell(t, "echo "+device+" hca_handle=max hca_object=max > "+dir+"/rdma.max; until rmdir "+dir+"; do sleep 0.1; done")
	for _, c := range []struct{ file, limit, said string }{
		{"rdma.max", device + " hca_object=9", "hca_object in " + dir + "/rdma.max allows 9 for " + device},
		{"pids.max", "40", dir + "/pids.max is 40"},
		{"memlock", "", "RLIMIT_MEMLOCK is 4194304 bytes"},
	} {
		if c.limit != "" {
			shell(t, "echo "+c.limit+" > "+dir+"/"+c.file)
		}
		cmd := exec.Command("/proc/self/exe", "-test.run=^TestKernelDoctorLimited$", "-test.v")
		cmd.Env = append(os.Environ(), "DOCTOR_LIMIT="+c.file, "DOCTOR_SAYS="+c.said)
		if c.file == "memlock" {
			var before unix.Rlimit
			if err := unix.Getrlimit(unix.RLIMIT_MEMLOCK, &before); err != nil {
				t.Fatal(err)
			}
			if err := unix.Setrlimit(unix.RLIMIT_MEMLOCK, &unix.Rlimit{Cur: 4 << 20, Max: before.Max}); err != nil {
				t.Fatal(err)
			}
			defer func() { _ = unix.Setrlimit(unix.RLIMIT_MEMLOCK, &before) }()
			ids := []syscall.SysProcIDMap{{Size: 1}}
			cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER, UidMappings: ids, GidMappings: ids}
		}
		if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "--- PASS") {
			t.Errorf("%s %s: %v\n%s", c.file, c.limit, err, out)
		}
	}
}
