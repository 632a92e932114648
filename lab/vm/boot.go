package vm

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Config describes the machine to boot.
type Config struct {
	Kernel string // one of Kernels
	Memory int    // MiB; 768 if 0
	// Share maps directories of the guest to directories of this machine. The guest can only read
	// them (9p).
	Share map[string]string
	// Forward maps TCP ports of the guest's eth0 to ports of 127.0.0.1 on this machine. 0 means any
	// free port (see Machine.Forwarded).
	Forward map[int]int
	// Console connects the guest's serial console, with a shell on it, to this process's terminal.
	// The machine ends with the shell.
	Console bool
	// Logf, if set, is called before something that takes long.
	Logf func(format string, args ...any)
}

// bootLimit is far above the duration of a boot on a busy machine: 5 to 30 s under TCG.
const bootLimit = 3 * time.Minute

// bootAttempts is more than one because about one boot in 50 ends in an int3 Oops, mostly in
// sched_clock_cpu. When the kernel patches its code (static keys), it puts an int3 there for a
// moment. QEMU's TCG with two processors now and then executes such an int3 after the patching is
// over, which the kernel takes for a bug. No code under test has run by then, so another attempt
// does not hide its faults.
const bootAttempts = 3

// Boot builds the image if necessary, starts a machine, and returns when its devices are active. A
// machine that dies before that is replaced, at most twice, and each death is logged. ctx bounds
// the boot only, not the life of the machine. The caller must Close the machine. If this process
// dies, the machine powers itself off.
func Boot(ctx context.Context, c Config) (*Machine, error) {
	if c.Logf == nil {
		c.Logf = func(string, ...any) {}
	}
	if err := checkSupported(); err != nil {
		return nil, err
	}
	if err := installNeeds(ctx, c.Logf, needToRun); err != nil {
		return nil, err
	}
	image, err := Build(ctx, c.Kernel, c.Logf)
	if err != nil {
		return nil, err
	}
	for attempt := 1; ; attempt++ {
		m, err := bootOnce(ctx, c, image)
		if err == nil {
			return m, nil
		}
		err = fmt.Errorf("booting the VM with kernel %s, attempt %d of %d: %w", image.Release, attempt, bootAttempts, err)
		if attempt == bootAttempts || !errors.Is(err, ErrDied) {
			return nil, err
		}
		c.Logf("vm: %v", err)
	}
}

// bootOnce makes one attempt to boot, in a new directory.
func bootOnce(ctx context.Context, c Config, image *Image) (*Machine, error) {
	dir, err := os.MkdirTemp("", "rdmactor-vm-")
	if err != nil {
		return nil, err
	}
	m, err := startMachine(ctx, c, image, dir)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return m, nil
}

func startMachine(ctx context.Context, c Config, image *Image, dir string) (*Machine, error) {
	ctx, stop := context.WithTimeout(ctx, bootLimit)
	defer stop()
	initrd := filepath.Join(dir, "initrd")
	if err := writeInitrd(ctx, initrd, image.initrd); err != nil {
		return nil, err
	}
	forwarded, err := choosePorts(c.Forward)
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("unix", filepath.Join(dir, "port"))
	if err != nil {
		return nil, err
	}
	defer listener.Close()
	m := newMachine(image, dir, forwarded)
	m.qemu = exec.Command("qemu-system-x86_64", qemuArgs(c, image, dir, forwarded)...)
	m.qemu.Stdout, m.qemu.Stderr = &m.said, &m.said
	if c.Console {
		m.qemu.Stdin, m.qemu.Stdout, m.qemu.Stderr = os.Stdin, os.Stdout, os.Stderr
	}
	began := time.Now()
	if err := m.qemu.Start(); err != nil {
		return nil, err
	}
	go m.awaitQEMU()
	go m.serveQEMU(listener)
	select {
	case <-m.ready:
		m.BootTime = time.Since(began)
		// It has some 40 MB, which a killed test would leave behind.
		if err := os.Remove(initrd); err != nil {
			m.killQEMU()
			return nil, err
		}
		c.Logf("vm: kernel %s is up after %.1f s", image.Release, m.BootTime.Seconds())
		return m, nil
	case <-m.dead:
		return nil, m.deathError()
	case <-ctx.Done():
		m.killQEMU()
		return nil, fmt.Errorf("%w\nconsole:\n%s", ctx.Err(), m.consoleTail())
	}
}

// qemuArgs returns QEMU's command line. It does not use KVM, because CI machines rarely have it.
// The other settings of -machine and -cpu, and the kernel parameters after quiet, turn off what
// these tests do not need and what costs time under TCG.
func qemuArgs(c Config, image *Image, dir string, forwarded map[int]int) []string {
	memory := c.Memory
	if memory == 0 {
		memory = 768
	}
	kernel := "console=ttyS0 quiet panic=-1 oops=panic cryptomgr.notests=1 random.trust_cpu=on no_timer_check nokaslr mitigations=off net.ifnames=0 tsc=reliable"
	console := "file,id=console,path=" + filepath.Join(dir, "console")
	if c.Console {
		kernel += " rig.shell"
		console = "stdio,id=console,signal=off,mux=on,logfile=" + filepath.Join(dir, "console")
	}
	network := "user,id=net,ipv6=off"
	for guest, host := range forwarded {
		network += fmt.Sprintf(",hostfwd=tcp:127.0.0.1:%d-10.0.2.15:%d", host, guest)
	}
	args := []string{
		"-accel", "tcg,thread=multi", "-cpu", "max,la57=off", "-smp", "2", "-m", strconv.Itoa(memory) + "M",
		"-nodefaults", "-no-reboot", "-display", "none", "-machine", "pc,vmport=off,smm=off",
		"-kernel", image.kernel, "-initrd", filepath.Join(dir, "initrd"),
		"-chardev", console, "-serial", "chardev:console",
		"-chardev", "socket,id=rig,path=" + filepath.Join(dir, "port"),
		"-device", "virtio-serial-pci", "-device", "virtserialport,chardev=rig,name=rig",
		"-netdev", network, "-device", "virtio-net-pci,netdev=net,romfile=",
	}
	i := 0
	for guest, host := range c.Share {
		tag := fmt.Sprintf("share%d", i)
		kernel += " rig.share=" + tag + ":" + guest
		args = append(args, "-fsdev", "local,id="+tag+",security_model=none,readonly=on,multidevs=remap,path="+strings.ReplaceAll(host, ",", ",,"),
			"-device", "virtio-9p-pci,fsdev="+tag+",mount_tag="+tag)
		i++
	}
	return append(args, "-append", kernel)
}

// choosePorts replaces each port 0 by a port that is free now.
func choosePorts(forward map[int]int) (map[int]int, error) {
	chosen := map[int]int{}
	for guest, host := range forward {
		if host == 0 {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				return nil, err
			}
			defer l.Close()
			host = l.Addr().(*net.TCPAddr).Port
		}
		chosen[guest] = host
	}
	return chosen, nil
}

// writeInitrd writes the cached archives and the rig's own files to one initrd. It compiles the
// agent for it.
func writeInitrd(ctx context.Context, path string, archives []string) error {
	agent, err := Compile(ctx, "build", "github.com/rdmactor/rdmactor/lab/vm/agent")
	if err != nil {
		return err
	}
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	for _, name := range archives {
		if err := appendFile(f, name); err != nil {
			return errors.Join(err, f.Close())
		}
	}
	return errors.Join(writeRig(f, agent), f.Close())
}

func appendFile(w io.Writer, path string) error {
	r, err := os.Open(path)
	if err != nil {
		return err
	}
	defer r.Close()
	_, err = io.Copy(w, r)
	return err
}
