// Package vm boots Debian's stock kernels in QEMU, without KVM, with the soft RDMA devices rxe and
// siw, and runs programs there. Every test that needs the kernel's own rdma_cm runs on it. The
// machine that runs the tests needs neither RDMA nor loadable modules.
//
//	m, err := vm.Boot(ctx, vm.Config{Kernel: "6.1"})
//	defer m.Close()
//	r, err := m.Run(ctx, ". /etc/rxe.env; rping -s -a $RDMA_ADDR -C 3 & sleep 1; rping -c -a $RDMA_ADDR -C 3")
//	// r.Output, r.Code
//
// By hand: make vm, and rping and friends are in the path. Tests: make test-vm, and package vmtest.
//
// # What it needs
//
// Linux on amd64, apt-get with a Debian mirror in /etc/apt, and qemu-system-x86_64, gcc, make, xz
// and zstd. What is missing is installed from Debian when root runs it. For anybody else the error
// says what to install. The machine itself needs no KVM, no loadable modules and no root.
//
// # What is in the machine
//
// The kernel is the newest of its line (6.1, 6.12) in the configured mirror's bookworm suites, its
// security updates or its backports, unpacked, never installed. Debian builds no siw: it is
// compiled from linux-source of exactly that version. The programs are bookworm's rdmacm-utils,
// ibverbs-utils, perftest, iproute2, strace, bash and busybox, with the libraries they name, all
// unmodified.
//
// Two devices are up, each on one end of a veth pair with two addresses. /etc/rxe.env and
// /etc/siw.env export what a test needs to know:
//
//	RDMA_KIND            rxe          siw
//	RDMA_DEVICE          rxe0         siw0
//	RDMA_NETDEV          rx0          sw0          the other ends are rx1 and sw1
//	RDMA_ADDR            10.10.1.1    10.10.2.1
//	RDMA_ADDR2           10.10.1.2    10.10.2.2
//	RDMA_OTHER_ADDR      10.10.2.1    10.10.1.1    the other device's
//	RDMA_SILENT_ADDR     10.10.1.99   10.10.2.99   resolves (a permanent neighbour), and nobody answers
//	RDMA_NOARP_ADDR      10.10.1.98   10.10.2.98   has no neighbour: resolving the address fails
//	RDMA_PLAIN_ADDR      10.10.9.1    10.10.9.1    on the dummy pl0, which has no RDMA device
//
// The command rig-hosts makes more hosts, network namespaces h1, h2, ... on one bridge with an
// RDMA device each, and rig-host-siw puts a siw device on eth0, the way to the machine outside:
// Config.Forward leads there from 127.0.0.1, and 10.0.2.2 is 127.0.0.1 outside. There is no
// default route: nothing leaves the machine.
//
// # How it talks
//
// A Go program in the guest, the agent, runs the commands; frames (package wire) travel over a
// virtio-serial port, so the kernel's log on the serial console garbles nothing. An oops causes a
// panic, and a panic ends QEMU. A command under way then fails with the end of the console's
// output.
//
// # What is cached
//
// Under os.UserCacheDir()/rdmactor-vm, or $RDMACTOR_VM_CACHE: the programs as one cpio archive,
// and for each kernel its uncompressed image (QEMU enters it by PVH; unpacking under TCG costs
// seconds) and a cpio archive of its modules. Packages are deleted once unpacked. The names
// contain a hash of the recipe, so a changed recipe is built again. Remove the directory to fetch
// the newest kernels.
//
// # Ownership
//
// A Machine may be used by any number of goroutines. Close ends it and everything that runs in it.
//
// # Errors
//
// A program's exit code is a result; an error means that the command could not be run to its end.
// What cannot be fetched is an error of Build or Boot, so that tests fail and are never skipped.
package vm
