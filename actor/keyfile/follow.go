package keyfile

import (
	"context"
	"io/fs"
	"os"
	"time"

	rdma "github.com/rdmactor/rdmactor/actor"
)

// Follow looks at a file again and again, and calls changed when its keys have changed, until ctx
// ends. changed gets the keys, which are overwritten when it returns, or why they cannot be read:
// once, not each time. Whoever keeps the keys that they have then loses nothing by a file that is
// being written. The file as it is at the beginning is a change, too.
//
// Changes are seen by the file's time, size and identity.
func Follow(ctx context.Context, name string, every time.Duration, changed func([]rdma.Credential, error)) {
	look := time.NewTicker(every)
	defer look.Stop()
	var f follower
	for ctx.Err() == nil {
		f.look(name, changed)
		select {
		case <-look.C:
		case <-ctx.Done():
		}
	}
}

// follower is what Follow knows about the file.
type follower struct {
	seen  fs.FileInfo // of the keys that were reported; nil: none, or there was an error since
	error string      // reported last
}

func (f *follower) look(name string, changed func([]rdma.Credential, error)) {
	if f.seen != nil {
		now, err := os.Stat(name)
		if err == nil && os.SameFile(f.seen, now) && f.seen.ModTime().Equal(now.ModTime()) && f.seen.Size() == now.Size() {
			return
		}
	}
	list, info, err := load(name)
	f.seen = info
	if err == nil {
		f.error = ""
		changed(list, nil)
		clear(list)
	} else if f.error != err.Error() {
		f.error = err.Error()
		changed(nil, err)
	}
}
