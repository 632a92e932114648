package hostlimits

import (
	"fmt"
	"io/fs"
	"strconv"
	"strings"
)

// Of Linux's capabilities.
const (
	capIPCLock     = 14
	capSysAdmin    = 21
	capSysResource = 24
)

// MayLock reports whether RLIMIT_MEMLOCK does not apply to this process. CAP_IPC_LOCK counts in the
// initial user namespace only: a process that has it in another one, such as that of a rootless
// container, is limited.
func MayLock(root fs.FS) bool { return hasCapability(root, capIPCLock) }

// hasCapability reports whether this process has a capability in the initial user namespace.
func hasCapability(root fs.FS, capability uint) bool {
	if !initialNamespace(root) {
		return false
	}
	value := statusField(readText(root, "proc/self/status"), "CapEff")
	set, err := strconv.ParseUint(value, 16, 64)
	return err == nil && set&(1<<capability) != 0
}

// initialNamespace reports whether this process is in the initial user namespace, whose inode is
// always the same (PROC_USER_INIT_INO). A kernel without user namespaces has no such link.
func initialNamespace(root fs.FS) bool {
	link, err := fs.ReadLink(root, "proc/self/ns/user")
	return err != nil || link == "user:[4026531837]"
}

// statusField returns a value of /proc/PID/status; "" if there is no such field.
func statusField(status, name string) string {
	for line := range strings.Lines(status) {
		if v, ok := strings.CutPrefix(line, name+":"); ok {
			return strings.TrimSpace(v)
		}
	}
	return ""
}

// Threads returns the limit that leaves this process the fewest threads: pids.max of its control
// groups, RLIMIT_NPROC of its user, or the machine's limit. The Go runtime ends a process that
// cannot start a thread. The last result is false if nothing is known to limit it.
func Threads(root fs.FS) (tightest Limit, ok bool) {
	var all []Limit
	for _, dir := range controlGroups(root, "pids") {
		most, known := parseLimit(readText(root, dir+"/pids.max"))
		used, alsoKnown := parseLimit(readText(root, dir+"/pids.current"))
		if known && alsoKnown {
			all = append(all, Limit{"/" + dir + "/pids.max", "", most, used})
		}
	}
	if total, known := countThreads(root); known {
		for _, name := range []string{"threads-max", "pid_max"} {
			if most, known := parseLimit(readText(root, "proc/sys/kernel/"+name)); known {
				all = append(all, Limit{"/proc/sys/kernel/" + name, "", most, total})
			}
		}
		if l, limited := userLimit(root, total); limited {
			all = append(all, l)
		}
	}
	for _, l := range all {
		if !ok || l.Left() < tightest.Left() {
			tightest, ok = l, true
		}
	}
	return tightest, ok && tightest.Max != Unlimited
}

// countThreads returns how many threads the machine has: the field behind the slash of "0.20 0.18
// 0.12 1/80 11206".
func countThreads(root fs.FS) (n uint64, ok bool) {
	fields := strings.Fields(readText(root, "proc/loadavg"))
	if len(fields) < 4 {
		return 0, false
	}
	_, total, _ := strings.Cut(fields[3], "/")
	return parseLimit(total)
}

// manyThreads is how many threads a process needs at most.
const manyThreads = 10_000

// userLimit returns RLIMIT_NPROC, which limits the threads of all processes of a user. Counting
// these takes long, so it is only done if the machine has nearly as many.
func userLimit(root fs.FS, total uint64) (l Limit, limited bool) {
	var most uint64
	for line := range strings.Lines(readText(root, "proc/self/limits")) {
		if rest, ok := strings.CutPrefix(line, "Max processes"); ok {
			if fields := strings.Fields(rest); len(fields) > 0 {
				most, limited = parseLimit(fields[0])
			}
		}
	}
	status := readText(root, "proc/self/status")
	user, ok := realUser(status)
	exempt := user == "0" && initialNamespace(root) || hasCapability(root, capSysAdmin) || hasCapability(root, capSysResource)
	if !limited || !ok || most == Unlimited || exempt {
		return Limit{}, false
	}
	l = Limit{fmt.Sprintf("RLIMIT_NPROC of user %s", user), "", most, total}
	if l.Left() < manyThreads {
		l.Used = threadsOf(root, user)
	}
	return l, true
}

// threadsOf counts the threads of a user.
func threadsOf(root fs.FS, user string) (n uint64) {
	entries, _ := fs.ReadDir(root, "proc") // without it none are counted
	for _, e := range entries {
		if _, err := strconv.Atoi(e.Name()); err != nil {
			continue
		}
		status := readText(root, "proc/"+e.Name()+"/status") // "" if it has ended
		if owner, ok := realUser(status); ok && owner == user {
			value := statusField(status, "Threads")
			if threads, ok := parseLimit(value); ok {
				n += threads
			}
		}
	}
	return n
}

// realUser returns the real user of a process.
func realUser(status string) (user string, ok bool) {
	value := statusField(status, "Uid")
	fields := strings.Fields(value)
	if len(fields) == 0 {
		return "", false
	}
	return fields[0], true
}
