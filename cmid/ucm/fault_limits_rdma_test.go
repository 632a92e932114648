//go:build linux && rdma

package ucm_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/cmid/ucm"
	"github.com/rdmactor/rdmactor/verbs"
	"github.com/rdmactor/rdmactor/verbs/uverbs"
)

const cgroups = "/sys/fs/cgroup"

// group makes a control group with the content of a limit file.
func group(t *testing.T, file, limit string) (dir string) {
	t.Helper()
	if _, err := os.Stat(cgroups + "/cgroup.procs"); err != nil {
		command(t, "mount", "-t", "cgroup2", "none", cgroups)
	}
	dir = filepath.Join(cgroups, strings.ReplaceAll(t.Name(), "/", "_"))
	controller, _, _ := strings.Cut(file, ".")
	for _, err := range []error{
		os.WriteFile(cgroups+"/cgroup.subtree_control", []byte("+"+controller), 0o644),
		os.Mkdir(dir, 0o755),
		os.WriteFile(filepath.Join(dir, file), []byte(limit), 0o644),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		if device, _, _ := strings.Cut(limit, " "); file == "rdma.max" {
			// The kernel keeps a pool for each group with a limit. It does not remove it with the
			// group, and dies of it when the device is unregistered.
			if err := os.WriteFile(filepath.Join(dir, file), []byte(device+" hca_handle=max hca_object=max"), 0o644); err != nil {
				t.Error(err)
			}
		}
		for deadline := time.Now().Add(faultPatience); ; time.Sleep(10 * time.Millisecond) {
			err := os.Remove(dir)
			if err == nil {
				return
			}
			if time.Now().After(deadline) { // it is busy while its last process ends
				t.Error(err)
				return
			}
		}
	})
	return dir
}

// joinGroup moves this process into the group that its parent has made.
func joinGroup() {
	dir := os.Getenv("FAULT_GROUP")
	if err := os.WriteFile(dir+"/cgroup.procs", []byte(strconv.Itoa(os.Getpid())), 0o644); err != nil {
		panic(err)
	}
}

func init() {
	faultRoles["limited threads"] = dialsSilence
	faultRoles["limited objects"] = makesObjects
}

const manyDials = 80

// dialsSilence makes many connects wait for an answer that does not come, and then destroys them.
func dialsSilence(s *side, at cmid.Addr) {
	joinGroup()
	var ids []*cmid.ID
	for range manyDials {
		ids = append(ids, s.connect(at).id)
	}
	for range 4 { // time to start threads
		s.turn(100 * time.Millisecond)
	}
	for _, id := range ids {
		s.must(id.Destroy())
	}
	for range 4 {
		s.turn(100 * time.Millisecond)
	}
	tasks, err := os.ReadDir("/proc/self/task")
	s.must(err)
	say("threads", len(tasks))
}

// A process whose threads are limited lives, however many connects and destructions wait in the
// kernel. Go ends a process that needs a thread and may not have it.
func TestFaultThreadsLimited(t *testing.T) {
	const most = 48
	dir := group(t, "pids.max", strconv.Itoa(most))
	p := startProcess(t, "limited threads", "FAULT_GROUP="+dir, fmt.Sprintf("FAULT_AT=%v:7471", addr(t, "RDMA_SILENT_ADDR")))
	p.patience = faultPatience
	n, err := strconv.Atoi(p.hears("threads"))
	if err != nil || n >= most {
		t.Errorf("%d threads, %v; want less than the %d that there may be", n, err, most)
	}
	t.Logf("%d threads of %d", n, most)
}

// makesObjects makes objects until it may make no others, and prints the error.
func makesObjects(s *side, _ cmid.Addr) {
	joinGroup()
	dev := s.listen("RDMA_ADDR", 0).Device()
	for range 64 {
		if _, err := dev.CreateCQ(1, func() {}); err != nil {
			tellLimit("queue", err)
			break
		}
	}
	_, err := dev.Alloc(1, verbs.LocalWrite)
	tellLimit("memory", err)
}

func tellLimit(what string, err error) {
	if e := (*uverbs.CgroupError)(nil); !errors.As(err, &e) || !errors.Is(err, unix.EAGAIN) {
		err = fmt.Errorf("not as wanted: %w", err)
	}
	say(what, err)
}

// A control group's limit of objects is named, with its file and value, by whatever does not get an
// object: a device that is opened, a queue, memory.
func TestFaultObjectsLimited(t *testing.T) {
	for _, limit := range []string{"hca_object=4", "hca_handle=0"} {
		t.Run(limit, func(t *testing.T) {
			leavesNothing(t)
			dir := group(t, "rdma.max", env(t, "RDMA_DEVICE")+" "+limit)
			p := startProcess(t, "limited objects", "FAULT_GROUP="+dir)
			resource, value, _ := strings.Cut(limit, "=")
			for _, what := range []string{"queue", "memory"} {
				said := p.hears(what)
				want := fmt.Sprintf("%s of %s in %s/rdma.max is %s, and %s are used", resource, env(t, "RDMA_DEVICE"), dir, value, value)
				if strings.Contains(said, "not as wanted") || strings.Contains(said, "MEMLOCK") || !strings.Contains(said, want) {
					t.Errorf("%s: %q, want %q", what, said, want)
				}
			}
		})
	}
}

// Devices without a node GUID, as functions of SR-IOV are at first, are distinguished by their
// index.
func TestFaultNoNodeGUID(t *testing.T) {
	leavesNothing(t)
	command(t, "modprobe", "nodeguid", "devices=rxe0,siw0")
	defer command(t, "rmmod", "nodeguid")
	for _, name := range []string{"rxe0", "siw0"} {
		if guid, err := os.ReadFile("/sys/class/infiniband/" + name + "/node_guid"); err != nil || strings.Trim(string(guid), "0:\n") != "" {
			t.Fatalf("%s has the GUID %s, %v", name, guid, err)
		}
	}
	if name, ok, err := ucm.DeviceFor(addr(t, "RDMA_ADDR")); name != env(t, "RDMA_DEVICE") || !ok || err != nil {
		t.Errorf("the device of the address is %q, %v, %v", name, ok, err)
	}
	works(t)
}
