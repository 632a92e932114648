// Package doctor looks at a machine's RDMA devices, and says what a program of this project can do
// with them: which devices there are, whether their files can be opened, what opens their data
// path, and what is missing, each with the way out. It is `rdmactor doctor`, and that of module
// native's adapter, which has libibverbs to look at besides.
//
// What the kernel, firmware and names have in them may be odd: everything is read with a bound, and
// printed with what a terminal would interpret escaped.
package doctor
