package ucm

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/cmid/ucm/internal/uabi"
	"github.com/rdmactor/rdmactor/internal/nldev"
	"github.com/rdmactor/rdmactor/verbs"
	"github.com/rdmactor/rdmactor/verbs/uverbs"
)

// Where the kernel shows its devices.
const (
	nodeDir   = "/dev/infiniband/"
	miscABI   = "/sys/class/misc/rdma_cm/abi_version"
	minABI    = 4 // with 3 the library sets queue pairs up
	moduleHow = "load the module (`modprobe rdma_ucm`), or use a kernel that has it"
)

// openChannel opens an event channel, at "" where the kernel reports it. The error is an
// *OpenError.
func openChannel(node string) (*uabi.File, error) {
	asked := error(nil)
	if node == "" {
		var c nldev.Chardev
		c, asked = discoverDevice()
		node = nodeDir + c.Name
		if c.ABI != 0 && (c.ABI < minABI || c.ABI > uabi.ABIVersion) {
			return nil, &OpenError{
				Path: node, Err: fmt.Errorf("the kernel's ABI version is %d, this program knows %d: %w", c.ABI, uabi.ABIVersion, unix.EPROTONOSUPPORT),
				Remedy: "use another kernel, or another version of this program",
			}
		}
	}
	fd, err := unix.Open(node, unix.O_RDWR|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, openError(node, err, asked)
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil || st.Mode&unix.S_IFMT != unix.S_IFCHR {
		_ = unix.Close(fd)
		return nil, &OpenError{Path: node, Err: errors.Join(err, unix.ENOTTY), Remedy: "this is no device file: is /dev mounted?"}
	}
	return uabi.FromFD(fd), nil
}

// openShared opens an event channel that all threads may use.
func openShared() (*uabi.File, error) {
	runtime.LockOSThread() // the file has this thread's credentials
	defer runtime.UnlockOSThread()
	f, err := openChannel("")
	if err == nil && !isShared(f.FD()) {
		_ = f.Close()
		err := &verbs.CredentialsError{File: "rdma_cm", Err: unix.EACCES}
		return nil, &OpenError{Path: nodeDir + "rdma_cm", Err: err, Remedy: "this process cannot use it"}
	}
	return f, err
}

// witnesses is how many other threads check whether they may use a file. In a process that has
// changed its credentials they may not, except for threads that were started since.
const witnesses = 4

// isShared reports whether other threads may use the file that this one, which its goroutine is
// locked to, has opened.
func isShared(fd int) bool {
	var begun, done sync.WaitGroup
	var refused atomic.Bool
	begun.Add(witnesses)
	for range witnesses {
		done.Go(func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			begun.Done()
			begun.Wait() // so that each has a separate thread
			if !uverbs.Allowed(fd) {
				refused.Store(true)
			}
		})
	}
	done.Wait()
	return !refused.Load()
}

// discoverDevice finds the device file. It asks the kernel, which loads the module; then sysfs; and
// else takes the usual path. The error is the reason why the kernel did not name the file.
func discoverDevice() (nldev.Chardev, error) {
	c, err := nldev.AskChardev("rdma_cm")
	if err == nil {
		return c, nil
	}
	c = nldev.Chardev{Name: "rdma_cm"}
	if text, readErr := os.ReadFile(miscABI); readErr == nil {
		abi, _ := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 32)
		c.ABI = uint32(abi)
		err = nil
	}
	return c, err
}

// openError names the missing part. asked is why the kernel did not name the file, nil when it
// did.
func openError(node string, err, asked error) *OpenError {
	e := &OpenError{Path: node, Err: err}
	missing := errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENXIO) || errors.Is(err, unix.ENODEV)
	switch {
	case missing && asked == nil:
		e.Remedy = "the kernel has rdma_cm, but its file is not there: mount devtmpfs on /dev or run udev; in a container, pass the device in"
	case missing && errors.Is(asked, unix.EPROTONOSUPPORT):
		e.Remedy = "this kernel has no RDMA (the module ib_core is not there): load rdma_ucm, or use a kernel that has it"
	case missing:
		e.Remedy = "the kernel module rdma_ucm is missing: " + moduleHow
	case errors.Is(err, unix.EACCES), errors.Is(err, unix.EPERM):
		e.Remedy = fmt.Sprintf("user %d may not open it: it needs read and write permission (udev gives everybody 0666: `chmod 666 %s`); "+
			"in a container, allow the device", os.Getuid(), node)
	case errors.Is(err, unix.EMFILE), errors.Is(err, unix.ENFILE):
		e.Remedy = "too many open files: see `ulimit -n`"
	default:
		e.Remedy = moduleHow
	}
	return e
}
