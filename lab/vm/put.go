package vm

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/rdmactor/rdmactor/lab/vm/wire"
)

// Put copies a file into the guest, makes it executable, and makes the directories above it.
func (m *Machine) Put(ctx context.Context, from, to string) error {
	f, err := os.Open(from)
	if err != nil {
		return err
	}
	defer f.Close()
	file, dir := Quote(to), Quote(path.Dir(to))
	return m.runWithInput(ctx, f, "mkdir -p "+dir+" && rm -f "+file+" && cat >"+file+" && chmod 755 "+file)
}

// PutDir copies the regular files below a directory into a directory of the guest.
func (m *Machine) PutDir(ctx context.Context, from, to string) error {
	var b bytes.Buffer
	a := newArchive(&b)
	err := fs.WalkDir(os.DirFS(from), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		content, err := os.ReadFile(filepath.Join(from, name))
		a.addFile(name, 0o644, content)
		return err
	})
	if err := errors.Join(err, a.close()); err != nil {
		return err
	}
	return m.runWithInput(ctx, &b, "mkdir -p "+Quote(to)+" && cd "+Quote(to)+" && cpio -iu")
}

// runWithInput runs a script with r as its standard input.
func (m *Machine) runWithInput(ctx context.Context, r io.Reader, script string) error {
	c, err := m.Start(script)
	if err != nil {
		return err
	}
	buf := make([]byte, wire.MaxPayload)
	for {
		n, err := r.Read(buf)
		if err != nil && !errors.Is(err, io.EOF) {
			return errors.Join(err, c.Kill())
		}
		// An empty payload ends the input. It is sent at the end of the file.
		if err := m.sendFrame(wire.Frame{Kind: wire.Stdin, Command: c.id, Payload: buf[:n]}); err != nil {
			return c.brokenError(err)
		}
		if n == 0 {
			break
		}
	}
	result, err := c.Wait(ctx)
	if err == nil && result.Code != 0 {
		err = fmt.Errorf("in the VM: %s: exit code %d: %s", script, result.Code, result.Output)
	}
	return err
}

// Quote quotes s as one word of a shell script.
func Quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
