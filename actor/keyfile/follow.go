package keyfile

import (
	"context"
	"crypto/sha256"
	"fmt"
	"time"

	rdma "github.com/rdmactor/rdmactor/actor"
)

// Follow reads a file again and again, and calls changed when its keys have changed, until ctx
// ends. changed gets the keys, which are overwritten when it returns, or why they cannot be read:
// once, not each time. The file as it is at the beginning is a change, too.
//
// Later changes are detected by the file's contents, and count when two looks in a row have found
// the same. So a file that is written in place changes nothing while it grows, unless its writer
// pauses for longer than every. Nothing in a file shows whether it is complete: to change it, write
// another one and rename it, as Add does. A program that keeps the keys that it has when it gets an
// error loses nothing by a file that is gone for a moment.
func Follow(ctx context.Context, name string, every time.Duration, changed func([]rdma.Credential, error)) {
	look := time.NewTicker(every)
	defer look.Stop()
	var f follower
	for ctx.Err() == nil {
		f.checkFile(name, changed)
		select {
		case <-look.C:
		case <-ctx.Done():
		}
	}
}

// follower is what Follow knows about the file.
type follower struct {
	last, reported state // of the last look, and of the last one that was reported
}

// state is the result of a look. The zero state is none.
type state struct {
	sum   [sha256.Size]byte // of the file's bytes
	error string            // why there are none
}

func (f *follower) checkFile(name string, changed func([]rdma.Credential, error)) {
	b, err := readContents(name)
	defer func() { clear(b[:cap(b)]) }()
	var list []rdma.Credential
	now := state{}
	if err == nil {
		now.sum = sha256.Sum256(b)
		if list, err = parseKeys(b); err != nil {
			err = fmt.Errorf("%s: %w", name, err)
		}
	}
	defer clear(list)
	if err != nil {
		now = state{error: err.Error()}
	}
	settled := now == f.last || f.reported == state{}
	f.last = now
	if !settled || now == f.reported {
		return
	}
	f.reported = now
	changed(list, err)
}
