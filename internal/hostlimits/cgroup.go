package hostlimits

import (
	"fmt"
	"io/fs"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"
)

// Unlimited is the value of a limit that does not exist.
const Unlimited = math.MaxUint64

// mostGroups bounds how deep a control group may be.
const mostGroups = 64

// Limit is a limit, and how much of it is used.
type Limit struct {
	Where     string // the file that sets it, or "RLIMIT_NPROC of user 1000"
	Resource  string // in that file: "hca_object"; "" if the file has one value only
	Max, Used uint64
}

// String returns "hca_object in /sys/fs/cgroup/x/rdma.max is 20, and 20 are used".
func (l Limit) String() string {
	if l.Resource == "" {
		return fmt.Sprintf("%s is %d, and %d are used", l.Where, l.Max, l.Used)
	}
	return fmt.Sprintf("%s in %s is %d, and %d are used", l.Resource, l.Where, l.Max, l.Used)
}

// Left returns how much may still be used.
func (l Limit) Left() uint64 {
	if l.Max == Unlimited {
		return Unlimited
	}
	return l.Max - min(l.Used, l.Max)
}

// controlGroups returns the directories of the control groups that this process is in and that a
// controller may limit, its own first. Groups outside of the process's cgroup namespace are not
// visible.
func controlGroups(root fs.FS, controller string) []string {
	group, unified, ok := groupOf(root, controller)
	if !ok {
		return nil
	}
	top, mounted, ok := mountOf(root, controller, unified)
	if !ok {
		return nil
	}
	below, ok := strings.CutPrefix(group, strings.TrimSuffix(top, "/"))
	if !ok || below != "" && below[0] != '/' || strings.HasPrefix(below, "/..") {
		return nil
	}
	mounted = strings.TrimPrefix(mounted, "/")
	var dirs []string
	for dir := path.Join(mounted, below); len(dirs) < mostGroups; dir = path.Dir(dir) {
		dirs = append(dirs, dir)
		if dir == mounted || dir == "." {
			break
		}
	}
	return dirs
}

// groupOf returns the path of this process's group. unified: it is of version 2.
func groupOf(root fs.FS, controller string) (group string, unified, ok bool) {
	for line := range strings.Lines(readText(root, "proc/self/cgroup")) {
		fields := strings.SplitN(strings.TrimSuffix(line, "\n"), ":", 3)
		switch {
		case len(fields) < 3:
		case slices.Contains(strings.Split(fields[1], ","), controller):
			return fields[2], false, true
		case fields[0] == "0" && fields[1] == "":
			// Unless a hierarchy of version 1 has the controller.
			group, unified, ok = fields[2], true, true
		}
	}
	return group, unified, ok
}

// mountOf returns which group is mounted where.
func mountOf(root fs.FS, controller string, unified bool) (top, dir string, ok bool) {
	for line := range strings.Lines(readText(root, "proc/self/mountinfo")) {
		before, after, _ := strings.Cut(line, " - ")
		mount, kind := strings.Fields(before), strings.Fields(after)
		if len(mount) < 5 || len(kind) < 3 {
			continue
		}
		if unified && kind[0] == "cgroup2" || !unified && kind[0] == "cgroup" && slices.Contains(strings.Split(kind[2], ","), controller) {
			return unescapePath(mount[3]), unescapePath(mount[4]), true
		}
	}
	return "", "", false
}

// unescapePath returns a path of mountinfo, in which \040 is a space: proc(5).
func unescapePath(s string) string {
	var b strings.Builder
	for len(s) > 0 {
		if len(s) >= 4 && s[0] == '\\' {
			if c, err := strconv.ParseUint(s[1:4], 8, 8); err == nil {
				b.WriteByte(byte(c))
				s = s[4:]
				continue
			}
		}
		b.WriteByte(s[0])
		s = s[1:]
	}
	return b.String()
}

// RDMA returns the limits that control groups set for the objects that this process has on an RDMA
// device: hca_handle for opened devices, hca_object for everything that is made on them. A limit
// that does not exist is not returned.
func RDMA(root fs.FS, device string) []Limit {
	var all []Limit
	for _, dir := range controlGroups(root, "rdma") {
		most := rdmaValues(root, dir+"/rdma.max", device)
		used := rdmaValues(root, dir+"/rdma.current", device)
		for _, resource := range []string{"hca_handle", "hca_object"} {
			if n, ok := most[resource]; ok && n != Unlimited {
				all = append(all, Limit{"/" + dir + "/rdma.max", resource, n, used[resource]})
			}
		}
	}
	return all
}

// rdmaValues reads the line of a device: "rxe0 hca_handle=2 hca_object=max".
func rdmaValues(root fs.FS, file, device string) map[string]uint64 {
	for line := range strings.Lines(readText(root, file)) {
		fields := strings.Fields(line)
		if len(fields) == 0 || fields[0] != device {
			continue
		}
		values := make(map[string]uint64)
		for _, f := range fields[1:] {
			name, value, _ := strings.Cut(f, "=")
			if n, ok := parseLimit(value); ok {
				values[name] = n
			}
		}
		return values
	}
	return nil
}

// parseLimit reads a value of a limit file.
func parseLimit(s string) (n uint64, ok bool) {
	if s = strings.TrimSpace(s); s == "max" || s == "unlimited" {
		return Unlimited, true
	}
	n, err := strconv.ParseUint(s, 10, 64)
	return n, err == nil
}

// readText returns a file's content, or "" if it cannot be read.
func readText(root fs.FS, file string) string {
	b, err := fs.ReadFile(root, file)
	if err != nil {
		return ""
	}
	return string(b)
}
