package keyfile_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/actor/keyfile"
)

// asRoot skips a test that has to give files to others.
func asRoot(t *testing.T) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("only root can give files to others")
	}
}

// Root adds a key to a service's file: the service can still read it.
func TestAddKeepsOwnerAndMode(t *testing.T) {
	asRoot(t)
	for _, c := range []struct {
		uid, gid int
		mode     fs.FileMode
	}{{12345, 23456, 0o600}, {12345, 0, 0o400}, {0, 23456, 0o440}, {0, 23456, 0o640}} {
		name := file(t, credential("ann", 1))
		if err := errors.Join(os.Chown(name, c.uid, c.gid), os.Chmod(name, c.mode)); err != nil {
			t.Fatal(err)
		}
		if err := keyfile.Add(name, credential("bob", 2)); err != nil {
			t.Error(err)
		}
		info, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		if s := info.Sys().(*syscall.Stat_t); int(s.Uid) != c.uid || int(s.Gid) != c.gid || info.Mode() != c.mode {
			t.Errorf("%+v: then it is %d:%d %v", c, s.Uid, s.Gid, info.Mode())
		}
		if list, err := keyfile.Load(name); err != nil || len(list) != 2 {
			t.Errorf("%+v: %d keys, %v", c, len(list), err)
		}
	}
}

// However many add keys at the same time, none is lost.
func TestAddsAtOnce(t *testing.T) {
	const adds = 20
	name := file(t, credential("ann", 1))
	var all sync.WaitGroup
	for i := range adds {
		all.Go(func() {
			if err := keyfile.Add(name, credential(fmt.Sprint("peer", i), byte(100+i))); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if list, err := keyfile.Load(name); err != nil || len(list) != 1+adds {
		t.Errorf("%d keys, %v; want %d", len(list), err, 1+adds)
	}
}

// info is a file of this owner and mode.
type info struct {
	fs.FileInfo
	uid  uint32
	mode fs.FileMode
}

func (i info) Mode() fs.FileMode { return i.mode }
func (i info) Sys() any          { return &syscall.Stat_t{Uid: i.uid} }

// A group may read a file that is root's, as Kubernetes makes it. Only the owner may write.
func TestCheckMode(t *testing.T) {
	for _, c := range []struct {
		uid  uint32
		mode fs.FileMode
		ok   bool
	}{
		{0, 0o400, true},
		{0, 0o600, true},
		{0, 0o440, true},
		{0, 0o640, true},
		{0, 0o460, false},
		{0, 0o660, false},
		{0, 0o620, false},
		{0, 0o650, false},
		{0, 0o444, false},
		{0, 0o604, false},
		{0, 0o641, false},
		{7, 0o400, true},
		{7, 0o600, true},
		{7, 0o700, true},
		{7, 0o440, false},
		{7, 0o640, false},
		{7, 0o660, false},
		{7, 0o602, false},
	} {
		err := keyfile.CheckMode("a.key", info{nil, c.uid, c.mode})
		if (err == nil) != c.ok || err != nil && !errors.Is(err, unix.EACCES) {
			t.Errorf("owner %d, mode %04o: %v", c.uid, c.mode, err)
		}
	}
}

// A key that two identities have would let each pass for the other.
func TestOneKeyOfTwo(t *testing.T) {
	if err := keyfile.Add(file(t, credential("ann", 1)), credential("bob", 1)); err == nil {
		t.Error("it is added")
	}
	if err := keyfile.Use(new(rdma.Keyring), []rdma.Credential{credential("ann", 1), credential("bob", 1)}); !errors.Is(err, unix.EINVAL) {
		t.Errorf("a ring takes it: %v", err)
	}
}

// A change is seen although the file's time and size stay: clocks of file systems are coarse.
func TestFollowSeesWhatStatDoesNot(t *testing.T) {
	name := file(t, credential("ann", 1))
	at := time.Now().Add(-time.Hour).Truncate(time.Second)
	if err := os.Chtimes(name, at, at); err != nil {
		t.Fatal(err)
	}
	changes := follow(t, name)
	next(t, changes, "the beginning")
	f, err := os.OpenFile(name, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	err = errors.Join(keyfile.Write(f, credential("ann", 2)), f.Close(), os.Chtimes(name, at, at))
	if err != nil {
		t.Fatal(err)
	}
	if c := next(t, changes, "another key"); c.err != nil || !same(c.list, []rdma.Credential{credential("ann", 2)}) {
		t.Errorf("then it is %v, %v", c.list, c.err)
	}
}
