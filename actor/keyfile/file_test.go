package keyfile_test

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/actor/keyfile"
)

// file makes a file of keys.
func file(t *testing.T, list ...rdma.Credential) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "a.key")
	if err := keyfile.Create(name, list...); err != nil {
		t.Fatal(err)
	}
	return name
}

func mode(t *testing.T, name string) fs.FileMode {
	t.Helper()
	info, err := os.Stat(name)
	if err != nil {
		t.Fatal(err)
	}
	return info.Mode()
}

func TestGenerate(t *testing.T) {
	a, err := keyfile.Generate("ann")
	b, err2 := keyfile.Generate("ann")
	if err != nil || err2 != nil || a.Key == b.Key || a.Key == [32]byte{} {
		t.Errorf("two keys: %v, %v", err, err2)
	}
	for _, bad := range []string{"", "#ann", " ann", "a\nb", strings.Repeat("x", 256)} {
		if _, err := keyfile.Generate(bad); !errors.Is(err, unix.EINVAL) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func TestCreate(t *testing.T) {
	name := file(t, credential("ann", 1), credential("bob", 2))
	if m := mode(t, name); m != 0o600 {
		t.Errorf("its mode is %v", m)
	}
	list, err := keyfile.Load(name)
	if err != nil || !same(list, []rdma.Credential{credential("ann", 1), credential("bob", 2)}) {
		t.Errorf("%v, %v", list, err)
	}
	if err := keyfile.Create(name, credential("eve", 3)); !errors.Is(err, fs.ErrExist) {
		t.Errorf("again: %v", err)
	}
	if again, err := keyfile.Load(name); err != nil || !same(again, list) {
		t.Errorf("then it is %v, %v", again, err)
	}
	other := name + "2"
	if err := keyfile.Create(other, credential("e\nve", 3)); !errors.Is(err, unix.EINVAL) {
		t.Errorf("an identity of two lines: %v", err)
	}
	if _, err := os.Stat(other); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("it has left a file behind: %v", err)
	}
}

func TestLoadRefuses(t *testing.T) {
	name := file(t, credential("ann", 1))
	for _, m := range []fs.FileMode{0o604, 0o660, 0o602, 0o620, 0o601, 0o644} {
		if err := os.Chmod(name, m); err != nil {
			t.Fatal(err)
		}
		_, err := keyfile.Load(name)
		var open *keyfile.ModeError
		if !errors.As(err, &open) || !errors.Is(err, unix.EACCES) || !strings.Contains(err.Error(), "chmod 600 "+name) {
			t.Errorf("%v: %v", m, err)
		}
	}
	for _, m := range []fs.FileMode{0o400, 0o600, 0o700} {
		if err := os.Chmod(name, m); err != nil {
			t.Fatal(err)
		}
		if _, err := keyfile.Load(name); err != nil {
			t.Errorf("%v: %v", m, err)
		}
	}
	dir := t.TempDir()
	pipe := filepath.Join(dir, "pipe")
	if err := unix.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, what := range []string{dir, pipe, "/dev/null"} {
		if _, err := keyfile.Load(what); !errors.Is(err, keyfile.ErrNotRegular) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, err := keyfile.Load(name + "2"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
	if err := os.WriteFile(name, []byte("# keys\nann\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := keyfile.Load(name); err == nil || err.Error() != name+": line 2: want IDENTITY:KEY" {
		t.Errorf("a bad line: %v", err)
	}
}

func TestAdd(t *testing.T) {
	name := filepath.Join(t.TempDir(), "a.key")
	if err := os.WriteFile(name, []byte("# ours\nann:"+key(1)), 0o600); err != nil {
		t.Fatal(err)
	}
	link := name + "-link"
	if err := os.Symlink(name, link); err != nil {
		t.Fatal(err)
	}
	for _, c := range []rdma.Credential{credential("bob", 2), credential("ann", 3)} {
		if err := keyfile.Add(link, c); err != nil {
			t.Fatal(err)
		}
	}
	before, err := os.ReadFile(name)
	want := "# ours\nann:" + key(1) + "\nbob:" + key(2) + "\nann:" + key(3) + "\n"
	if err != nil || string(before) != want || mode(t, name) != 0o600 {
		t.Errorf("it is %q, %v, mode %v; want %q", before, err, mode(t, name), want)
	}
	if info, err := os.Lstat(link); err != nil || info.Mode()&fs.ModeSymlink == 0 {
		t.Errorf("the link is %v, %v", info, err)
	}
	for _, c := range []rdma.Credential{credential("ann", 4), credential("bob", 2), credential("", 5), {Identity: "zoe"}} {
		if err := keyfile.Add(name, c); !errors.Is(err, unix.EINVAL) {
			t.Errorf("%v: %v", c, err)
		}
	}
	after, err := os.ReadFile(name)
	if err != nil || !bytes.Equal(before, after) {
		t.Errorf("after refusals it is %q, %v", after, err)
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(name), ".key-*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	if err := os.Chmod(name, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := keyfile.Add(name, credential("eve", 6)); !errors.Is(err, unix.EACCES) {
		t.Errorf("to a file that all can read: %v", err)
	}
}

func TestUse(t *testing.T) {
	ring := new(rdma.Keyring)
	if err := keyfile.Use(ring, nil); !errors.Is(err, keyfile.ErrNoKeys) {
		t.Errorf("no keys: %v", err)
	}
	three := []rdma.Credential{credential("ann", 1), credential("ann", 2), credential("ann", 3)}
	if err := keyfile.Use(ring, three); !errors.Is(err, unix.EINVAL) {
		t.Errorf("three keys: %v", err)
	}
	if err := keyfile.Use(ring, three[:2]); err != nil {
		t.Errorf("two keys: %v", err)
	}
}

// change is one call of Follow's function.
type change struct {
	list []rdma.Credential
	err  error
}

// follow follows a file until the test ends.
func follow(t *testing.T, name string) <-chan change {
	t.Helper()
	changes, ended := make(chan change, 16), make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		defer close(ended)
		keyfile.Follow(ctx, name, time.Millisecond, func(list []rdma.Credential, err error) {
			changes <- change{append([]rdma.Credential(nil), list...), err}
		})
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
		if len(changes) > 0 {
			t.Errorf("one change more: %v", <-changes)
		}
	})
	return changes
}

// next returns the next change.
func next(t *testing.T, changes <-chan change, why string) change {
	t.Helper()
	select {
	case c := <-changes:
		return c
	case <-time.After(20 * time.Second):
		t.Fatalf("nothing was seen: %s", why)
		return change{}
	}
}

func TestFollow(t *testing.T) {
	name := file(t, credential("ann", 1))
	changes := follow(t, name)
	if c := next(t, changes, "the beginning"); c.err != nil || !same(c.list, []rdma.Credential{credential("ann", 1)}) {
		t.Errorf("at the beginning %v", c)
	}
	if err := keyfile.Add(name, credential("ann", 2)); err != nil {
		t.Fatal(err)
	}
	if c := next(t, changes, "a key more"); c.err != nil || len(c.list) != 2 {
		t.Errorf("with a key more %v", c)
	}
	if err := os.Remove(name); err != nil {
		t.Fatal(err)
	}
	if c := next(t, changes, "the file is gone"); !errors.Is(c.err, fs.ErrNotExist) {
		t.Errorf("without a file %v", c)
	}
	if time.Sleep(20 * time.Millisecond); len(changes) > 0 {
		t.Errorf("that is reported again: %v", <-changes)
	}
	if err := os.WriteFile(name+"2", []byte("ann:"+key(2)), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(name+"2", name); err != nil {
		t.Fatal(err)
	}
	if c := next(t, changes, "all can read it"); !errors.Is(c.err, unix.EACCES) {
		t.Errorf("with a file that all can read %v", c)
	}
	if err := os.Chmod(name, 0o600); err != nil {
		t.Fatal(err)
	}
	if c := next(t, changes, "its mode is right again"); c.err != nil || !same(c.list, []rdma.Credential{credential("ann", 2)}) {
		t.Errorf("in the end %v", c)
	}
	// written in its place, and as long as before
	if err := os.WriteFile(name, []byte("ann:"+key(3)), 0o600); err != nil {
		t.Fatal(err)
	}
	for c := next(t, changes, "another key"); !same(c.list, []rdma.Credential{credential("ann", 3)}); {
		c = next(t, changes, "another key") // it was empty for a moment
	}
	time.Sleep(20 * time.Millisecond) // nothing changes: nothing is seen
}
