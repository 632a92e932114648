package keyfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	rdma "github.com/rdmactor/rdmactor/actor"
)

// A file that is being written in place is no change until two looks have found the same, even if
// its first part is a valid list of keys: the earlier keys stay.
func TestFollowWaitsForTheWholeFile(t *testing.T) {
	name := filepath.Join(t.TempDir(), "a.key")
	peer := func(name string, b byte) rdma.Credential { return rdma.Credential{Identity: name, Key: [32]byte{b}} }
	if err := Create(name, peer("ann", 1), peer("bob", 2)); err != nil {
		t.Fatal(err)
	}
	var (
		f    follower
		seen [][]rdma.Credential
		errs []error
	)
	look := func(why string, changes int) {
		t.Helper()
		f.checkFile(name, func(list []rdma.Credential, err error) {
			seen, errs = append(seen, append([]rdma.Credential(nil), list...)), append(errs, err)
		})
		if len(seen) != changes {
			t.Fatalf("%s: %d changes, want %d; the last is %v, %v", why, len(seen), changes, seen[len(seen)-1], errs[len(seen)-1])
		}
	}
	look("the beginning", 1)
	w, err := os.OpenFile(name, os.O_WRONLY|os.O_TRUNC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	look("it is empty", 1)
	for i := range 3 {
		if err := Write(w, peer("peer", byte(3+i))); i < 2 && err != nil {
			t.Fatal(err)
		}
		if i < 2 {
			look("a line more", 1)
		}
	}
	look("a line too many", 1)
	look("a line too many, and that stays", 2)
	if errs[1] == nil {
		t.Errorf("three keys of one identity: %v", seen[1])
	}
	look("nothing has changed", 2)
	if err := w.Truncate(0); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Seek(0, 0); err != nil {
		t.Fatal(err)
	}
	if err := Write(w, peer("ann", 1), peer("bob", 2)); err != nil {
		t.Fatal(err)
	}
	look("the first keys", 2)
	look("the first keys, and they stay", 3)
	if errs[2] != nil || len(seen[2]) != 2 {
		t.Errorf("in the end %v, %v", seen[2], errs[2])
	}
	if err := os.Rename(name, name+"2"); err != nil {
		t.Fatal(err)
	}
	look("it is gone", 3)
	if err := os.Rename(name+"2", name); err != nil {
		t.Fatal(err)
	}
	look("it is there again", 3)
	look("it is as before", 3)
	if err := os.Remove(name); err != nil {
		t.Fatal(err)
	}
	look("it is gone", 3)
	look("it stays away", 4)
	if !errors.Is(errs[3], fs.ErrNotExist) {
		t.Errorf("without a file %v", errs[3])
	}
}
