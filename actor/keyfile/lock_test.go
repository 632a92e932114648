package keyfile

import (
	"os"
	"path/filepath"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	rdma "github.com/rdmactor/rdmactor/actor"
)

// A key is added where locks need a descriptor that may write, as on NFS, where there are no locks,
// and to a file that its owner may only read.
func TestAddLocks(t *testing.T) {
	defer func() { flock = unix.Flock }()
	likeNFS := func(fd, how int) error { // EBADF, unless the descriptor may write
		if flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0); err != nil || flags&unix.O_ACCMODE == unix.O_RDONLY {
			return unix.EBADF
		}
		return unix.Flock(fd, how)
	}
	without := func(err error) func(fd, how int) error { return func(int, int) error { return err } }
	for name, tt := range map[string]struct {
		flock func(fd, how int) error
		mode  os.FileMode
	}{
		"NFS":                   {likeNFS, 0o600},
		"NFS without lockd":     {without(unix.ENOLCK), 0o600},
		"no locks":              {without(unix.EOPNOTSUPP), 0o600},
		"a file to be read":     {unix.Flock, 0o400},
		"interrupted by signal": {once(unix.EINTR), 0o600},
	} {
		t.Run(name, func(t *testing.T) {
			flock = tt.flock
			file := filepath.Join(t.TempDir(), "a.key")
			ann, bob := rdma.Credential{Identity: "ann"}, rdma.Credential{Identity: "bob"}
			ann.Key[0], bob.Key[0] = 1, 2
			if err := Create(file, ann); err != nil {
				t.Fatal(err)
			}
			if err := os.Chmod(file, tt.mode); err != nil {
				t.Fatal(err)
			}
			if err := Add(file, bob); err != nil {
				t.Fatal(err)
			}
			if list, err := Load(file); err != nil || len(list) != 2 {
				t.Errorf("%d keys, %v; want 2", len(list), err)
			}
		})
	}
}

// once fails with err the first time.
func once(err error) func(fd, how int) error {
	var first sync.Once
	return func(fd, how int) error {
		failed := false
		first.Do(func() { failed = true })
		if failed {
			return err
		}
		return unix.Flock(fd, how)
	}
}
