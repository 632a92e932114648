// Package vm boots Debian's stock kernels in QEMU, without KVM, and runs programs there. The
// machines have the soft RDMA devices rxe and siw. Every test that needs the kernel's rdma_cm runs
// in such a machine. The machine that runs the tests needs neither RDMA nor loadable modules.
//
//	m, err := vm.Boot(ctx, vm.Config{Kernel: "6.1"})
//	defer m.Close()
//	r, err := m.Run(ctx, ". /etc/rxe.env; rping -s -a $RDMA_ADDR -C 3 & sleep 1; rping -c -a $RDMA_ADDR -C 3")
//	// r.Output, r.Code
//
// To work in a machine by hand, run make vm. rping and the other programs are in the path. To run
// the tests, run make test-vm. Package vmtest is for writing tests.
//
// # What it needs
//
// Linux on amd64, apt-get with a Debian mirror in /etc/apt, and qemu-system-x86_64, gcc, make, xz
// and zstd. If a program is missing, the package installs it from Debian if root runs it. For other
// users the error names the packages to install. KVM, loadable modules and root are not needed.
//
// # What is in the machine
//
// The kernel is the newest of its line (6.1, 6.12) in the configured mirror's bookworm suites, with
// security updates and backports. It is unpacked, never installed. Debian does not build siw, so
// siw is compiled from linux-source of exactly that version. The programs are bookworm's
// rdmacm-utils, ibverbs-utils, perftest, iproute2, strace, bash and busybox, with the libraries
// that they need. All are unmodified.
//
// The module nodeguid, which is part of this package, removes the node GUIDs of devices until it is
// unloaded.
//
// Two devices are up. Each is on one end of a veth pair and has two addresses. /etc/rxe.env and
// /etc/siw.env export the variables for tests:
//
//	RDMA_KIND            rxe          siw
//	RDMA_DEVICE          rxe0         siw0
//	RDMA_NETDEV          rx0          sw0          the other ends are rx1 and sw1
//	RDMA_ADDR            10.10.1.1    10.10.2.1
//	RDMA_ADDR2           10.10.1.2    10.10.2.2
//	RDMA_OTHER_ADDR      10.10.2.1    10.10.1.1    the other device's
//	RDMA_SILENT_ADDR     10.10.1.99   10.10.2.99   resolves (a permanent neighbour), and never answers
//	RDMA_NOARP_ADDR      10.10.1.98   10.10.2.98   has no neighbour: resolving the address fails
//	RDMA_PLAIN_ADDR      10.10.9.1    10.10.9.1    on the dummy pl0, which has no RDMA device
//
// The command rig-hosts makes more hosts. They are network namespaces h1, h2 and so on, each with
// an RDMA device, on one bridge. The command rig-host-siw puts a siw device on eth0, which leads to
// the machine outside. Config.Forward forwards ports of 127.0.0.1 outside to eth0, and 10.0.2.2 is
// 127.0.0.1 outside. There is no default route, so nothing else leaves the machine.
//
// # How it talks
//
// A Go program in the guest, the agent, runs the commands. It exchanges frames (package wire) with
// the rig over a virtio-serial port, so that the kernel's log on the serial console does not mix
// with them. An oops causes a panic, and a panic ends QEMU. The error of a running command then
// contains the end of the console's output.
//
// # What is cached
//
// The cache is in os.UserCacheDir()/rdmactor-vm, or in $RDMACTOR_VM_CACHE. It has the programs as
// one cpio archive. For each kernel it has the uncompressed image and a cpio archive of the
// modules. The image is uncompressed because QEMU can enter it by PVH, and unpacking it under TCG
// would take seconds. Packages are deleted once unpacked. The names of files contain a hash of the
// recipe, so that a changed recipe is built again. Remove the directory to fetch the newest
// kernels.
//
// # Ownership
//
// Any number of goroutines may use a Machine. Close ends it and everything that runs in it.
//
// # Errors
//
// A program's exit code is a result. An error means that the command could not be run to its end.
// If something cannot be fetched, Build or Boot returns an error, so that tests fail and are never
// skipped.
package vm
