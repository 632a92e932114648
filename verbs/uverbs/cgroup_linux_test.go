package uverbs

import (
	"errors"
	"strings"
	"testing"
	"testing/fstest"

	"golang.org/x/sys/unix"
)

// TestControlGroupIsNamed: EAGAIN is attributed to a control group only if its limit for the
// requested object is reached. The error names the file, its value, and the command that raises it.
func TestControlGroupIsNamed(t *testing.T) {
	root := fstest.MapFS{}
	for file, content := range map[string]string{
		"proc/self/cgroup":             "0::/a\n",
		"proc/self/mountinfo":          "29 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
		"sys/fs/cgroup/a/rdma.max":     "rxe0 hca_handle=2 hca_object=20\nsiw0 hca_handle=max hca_object=20\n",
		"sys/fs/cgroup/a/rdma.current": "rxe0 hca_handle=1 hca_object=20\nsiw0 hca_handle=7 hca_object=19\n",
	} {
		root[file] = &fstest.MapFile{Data: []byte(content)}
	}
	for _, c := range []struct {
		device, resource string
		err              error
		named            bool
	}{
		{"rxe0", objects, unix.EAGAIN, true},
		{"rxe0", objects, unix.ENOMEM, false},
		{"rxe0", handles, unix.EAGAIN, false},
		{"siw0", objects, unix.EAGAIN, false},
		{"siw0", handles, unix.EAGAIN, false},
		{"mlx5_0", objects, unix.EAGAIN, false},
	} {
		err := cgroupError(root, c.device, c.resource, c.err)
		e := (*CgroupError)(nil)
		if named := errors.As(err, &e); named != c.named || !errors.Is(err, c.err) {
			t.Errorf("%s of %s, %v: %v", c.resource, c.device, c.err, err)
		} else if named && !strings.Contains(err.Error(), "hca_object of rxe0 in /sys/fs/cgroup/a/rdma.max is 20, and 20 are used: "+
			"raise it (`echo rxe0 hca_object=max > /sys/fs/cgroup/a/rdma.max`)") {
			t.Errorf("%q", err)
		}
	}
	if err := cgroupError(root, "rxe0", objects, nil); err != nil {
		t.Error(err)
	}
}
