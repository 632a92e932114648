// Package doctor examines a machine's RDMA devices, and reports their use for a program of this
// project: the devices, whether their files can be opened, which library or package opens their
// data path, and the missing parts, each with a remedy. `rdmactor doctor` runs it, and so does the
// doctor of module native's adapter, which also examines libibverbs.
//
// The texts of the kernel and firmware, and names, may be odd: everything read has a bound, and
// printed bytes that a terminal would interpret are escaped.
package doctor
