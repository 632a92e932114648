package hostlimits

import (
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"
)

// tree is a made-up machine.
type tree fstest.MapFS

func (m tree) put(files ...string) tree {
	for i := 0; i < len(files); i += 2 {
		m[files[i]] = &fstest.MapFile{Data: []byte(files[i+1])}
	}
	return m
}

func (m tree) link(file, to string) tree {
	m[file] = &fstest.MapFile{Data: []byte(to), Mode: fs.ModeSymlink}
	return m
}

const (
	unifiedMount = "29 23 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n"
	oldMounts    = "34 31 0:31 / /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids\n35 31 0:32 / /sys/fs/cgroup/rdma rw - cgroup cgroup rw,rdma\n"
	initialUser  = "user:[4026531837]"
	otherUser    = "user:[4026532281]"
	root         = "Uid:\t0\t0\t0\t0\nThreads:\t7\nCapEff:\t000001ffffffffff\n"
	dropped      = "Uid:\t0\t0\t0\t0\nThreads:\t7\nCapEff:\t0000000000000000\n"
	nobody       = "Uid:\t1000\t0\t0\t0\nThreads:\t7\nCapEff:\t0000000000000000\n"
)

// TestRDMA: the limits of every group above the process's count, wherever they are mounted.
func TestRDMA(t *testing.T) {
	const two, unlimited = "rxe0 hca_handle=2 hca_object=30\nsiw0 hca_handle=1 hca_object=1\n", "rxe0 hca_handle=max hca_object=max\n"
	for name, c := range map[string]struct {
		m    tree
		want string
	}{
		"version 2": {
			tree{}.put("proc/self/cgroup", "0::/a.slice/b.scope\n", "proc/self/mountinfo", unifiedMount,
				"sys/fs/cgroup/a.slice/b.scope/rdma.max", two, "sys/fs/cgroup/a.slice/b.scope/rdma.current", "rxe0 hca_handle=1 hca_object=30\n",
				"sys/fs/cgroup/a.slice/rdma.max", "rxe0 hca_handle=max hca_object=40\n"),
			"hca_handle in /sys/fs/cgroup/a.slice/b.scope/rdma.max is 2, and 1 are used; " +
				"hca_object in /sys/fs/cgroup/a.slice/b.scope/rdma.max is 30, and 30 are used; hca_object in /sys/fs/cgroup/a.slice/rdma.max is 40, and 0 are used",
		},
		"version 1": {
			tree{}.put("proc/self/cgroup", "9:pids:/x\n8:cpu,rdma:/b\n0::/y\n", "proc/self/mountinfo", unifiedMount+
				"35 31 0:32 / /sys/fs/cgroup/rdma rw - cgroup cgroup rw,rdma,cpu\n", "sys/fs/cgroup/rdma/b/rdma.max", two),
			"hca_handle in /sys/fs/cgroup/rdma/b/rdma.max is 2, and 0 are used; hca_object in /sys/fs/cgroup/rdma/b/rdma.max is 30, and 0 are used",
		},
		"a container's namespace": {
			tree{}.put("proc/self/cgroup", "0::/\n", "proc/self/mountinfo", unifiedMount, "sys/fs/cgroup/rdma.max", two),
			"hca_handle in /sys/fs/cgroup/rdma.max is 2, and 0 are used; hca_object in /sys/fs/cgroup/rdma.max is 30, and 0 are used",
		},
		"a container's mount": {
			tree{}.put("proc/self/cgroup", "0::/docker/1\n", "proc/self/mountinfo",
				"29 23 0:26 /docker/1 /sys/fs/cgroup ro - cgroup2 cgroup2 rw\n", "sys/fs/cgroup/rdma.max", two),
			"hca_handle in /sys/fs/cgroup/rdma.max is 2, and 0 are used; hca_object in /sys/fs/cgroup/rdma.max is 30, and 0 are used",
		},
		"another container's mount": {
			tree{}.put("proc/self/cgroup", "0::/docker/12\n", "proc/self/mountinfo",
				"29 23 0:26 /docker/1 /sys/fs/cgroup ro - cgroup2 cgroup2 rw\n", "sys/fs/cgroup/2/rdma.max", two),
			"",
		},
		"names with spaces": {
			tree{}.put("proc/self/cgroup", "0::/my group\\1/x \n", "proc/self/mountinfo",
				`29 23 0:26 /my\040group\1341 /mnt/my\040groups\0111 ro - cgroup2 cgroup2 rw`+"\n", "mnt/my groups\t1/x /rdma.max", two),
			"hca_handle in /mnt/my groups\t1/x /rdma.max is 2, and 0 are used; hca_object in /mnt/my groups\t1/x /rdma.max is 30, and 0 are used",
		},
		"unlimited": {tree{}.put("proc/self/cgroup", "0::/a\n", "proc/self/mountinfo", unifiedMount, "sys/fs/cgroup/a/rdma.max", unlimited), ""},
		"another device's": {tree{}.put("proc/self/cgroup", "0::/a\n", "proc/self/mountinfo", unifiedMount, "sys/fs/cgroup/a/rdma.max",
			"rxe00 hca_handle=1 hca_object=1\n"), ""},
		"outside of the namespace": {tree{}.put("proc/self/cgroup", "0::/../a\n", "proc/self/mountinfo", unifiedMount, "sys/fs/cgroup/rdma.max", two,
			"sys/fs/a/rdma.max", two), ""},
		"nothing mounted": {tree{}.put("proc/self/cgroup", "0::/a\n"), ""},
		"nothing":         {tree{}, ""},
		"what makes no sense": {tree{}.put("proc/self/cgroup", "0::/a\n:\n\n", "proc/self/mountinfo", " - \n"+unifiedMount,
			"sys/fs/cgroup/a/rdma.max", "rxe0 hca_handle=-1 hca_object=x =\n"), ""},
	} {
		var got []string
		for _, l := range RDMA(fstest.MapFS(c.m), "rxe0") {
			got = append(got, fmt.Sprint(l))
		}
		if s := strings.Join(got, "; "); s != c.want {
			t.Errorf("%s:\n%s\nwant\n%s", name, s, c.want)
		}
	}
}

// TestThreads: the limit that leaves the fewest threads counts.
func TestThreads(t *testing.T) {
	machine := func() tree {
		return tree{}.put("proc/self/cgroup", "0::/a/b\n", "proc/self/mountinfo", unifiedMount, "proc/loadavg", "0.20 0.18 0.12 1/800 11206\n",
			"proc/sys/kernel/threads-max", "100000\n", "proc/sys/kernel/pid_max", "32768\n", "proc/self/status", nobody,
			"proc/self/limits", "Max cpu time              unlimited            unlimited            seconds\n"+
				"Max processes             20000                30000                processes\n",
		).link("proc/self/ns/user", initialUser)
	}
	for name, c := range map[string]struct {
		m    tree
		want string
	}{
		"the user's limit": {machine(), "RLIMIT_NPROC of user 1000 is 20000, and 800 are used"},
		"root has none":    {machine().put("proc/self/status", root), "/proc/sys/kernel/pid_max is 32768, and 800 are used"},
		"root without capabilities has none": {
			machine().put("proc/self/status", dropped), "/proc/sys/kernel/pid_max is 32768, and 800 are used",
		},
		"a user with CAP_SYS_RESOURCE has none": {
			machine().put("proc/self/status", strings.Replace(nobody, "CapEff:\t0000000000000000", "CapEff:\t0000000001000000", 1)),
			"/proc/sys/kernel/pid_max is 32768, and 800 are used",
		},
		"a user with CAP_SYS_ADMIN has none": {
			machine().put("proc/self/status", strings.Replace(nobody, "CapEff:\t0000000000000000", "CapEff:\t0000000000200000", 1)),
			"/proc/sys/kernel/pid_max is 32768, and 800 are used",
		},
		"root of a rootless container": {
			machine().put("proc/self/status", root).link("proc/self/ns/user", otherUser),
			"RLIMIT_NPROC of user 0 is 20000, and 800 are used",
		},
		"the user's threads are counted": {machine().put("proc/loadavg", "0 0 0 1/15000 1", "proc/sys/kernel/pid_max", "4194304", "proc/12/status", nobody, "proc/13/status", root,
			"proc/14/status", nobody, "proc/15/status", "", "proc/x/status", nobody), "RLIMIT_NPROC of user 1000 is 20000, and 14 are used"},
		"a group": {machine().put("sys/fs/cgroup/a/b/pids.max", "max\n", "sys/fs/cgroup/a/b/pids.current", "5\n",
			"sys/fs/cgroup/a/pids.max", "100\n", "sys/fs/cgroup/a/pids.current", "60\n"), "/sys/fs/cgroup/a/pids.max is 100, and 60 are used"},
		"more than it may": {
			machine().put("sys/fs/cgroup/a/b/pids.max", "3\n", "sys/fs/cgroup/a/b/pids.current", "5\n"),
			"/sys/fs/cgroup/a/b/pids.max is 3, and 5 are used",
		},
		"version 1": {machine().put("proc/self/cgroup", "4:pids:/p\n0::/\n", "proc/self/mountinfo", unifiedMount+oldMounts,
			"sys/fs/cgroup/pids/p/pids.max", "9\n", "sys/fs/cgroup/pids/p/pids.current", "1"), "/sys/fs/cgroup/pids/p/pids.max is 9, and 1 are used"},
	} {
		l, ok := Threads(fstest.MapFS(c.m))
		if got := fmt.Sprint(l); got != c.want || !ok {
			t.Errorf("%s: %s, %v; want %s", name, got, ok, c.want)
		}
		if l.Used > l.Max && l.Left() != 0 {
			t.Errorf("%s: %d are left", name, l.Left())
		}
	}
	if l, ok := Threads(fstest.MapFS{}); ok {
		t.Errorf("nothing limits to %v", l)
	}
}

// TestMayLock: CAP_IPC_LOCK is bit 14, and counts in the initial user namespace only.
func TestMayLock(t *testing.T) {
	for _, c := range []struct {
		set, namespace string
		want           bool
	}{
		{"0000000000004000", initialUser, true},
		{"000001ffffffbfff", initialUser, false},
		{"000001ffffffffff", otherUser, false},
		{"0000000000004000", "", true}, // a kernel without user namespaces
		{"x", initialUser, false},
		{"", initialUser, false},
	} {
		m := tree{}.put("proc/self/status", "Name:\tx\nCapEff:\t"+c.set+"\nCapBnd:\t000001ffffffffff\n")
		if c.namespace != "" {
			m.link("proc/self/ns/user", c.namespace)
		}
		if got := MayLock(fstest.MapFS(m)); got != c.want {
			t.Errorf("%q in %q: %v", c.set, c.namespace, got)
		}
	}
	if MayLock(fstest.MapFS{}) {
		t.Error("nothing may lock memory")
	}
}
