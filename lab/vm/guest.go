package vm

import (
	"embed"
	"io"
	"io/fs"
	"os"
	"strings"
)

//go:embed guest
var guest embed.FS

// Env returns environment variables for a test, as NAME=value. They describe the machine's device
// of a kind, rxe or siw, and are those that /etc/KIND.env exports in the guest.
func Env(kind string) []string {
	content, err := guest.ReadFile("guest/etc/" + kind + ".env")
	if err != nil {
		panic("vm: no device is of kind " + kind)
	}
	var env []string
	for line := range strings.Lines(string(content)) {
		env = append(env, strings.TrimSpace(strings.TrimPrefix(line, "export ")))
	}
	return env
}

// writeRig writes an archive of the rig's files: those in the directory guest, and the agent.
func writeRig(w io.Writer, agent string) error {
	a := newArchive(w)
	err := fs.WalkDir(guest, "guest", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := guest.ReadFile(path)
		name := strings.TrimPrefix(path, "guest/")
		perm := 0o644
		if name == "init" || strings.HasPrefix(name, "rig/bin/") {
			perm = 0o755
		}
		a.addFile(name, perm, content)
		return err
	})
	if err != nil {
		return err
	}
	content, err := os.ReadFile(agent)
	if err != nil {
		return err
	}
	a.addFile("rig/agent", 0o755, content)
	a.addDir("root")
	a.addDir("dev")
	return a.close()
}
