// Package hostlimits reads the limits of this machine for this process: threads, RDMA objects,
// locked memory. It reads files of /proc and of control groups, version 1 and 2, and changes
// nothing. Each limit names the file that sets it, so that an error can.
//
// # Ownership
//
// Functions keep nothing. Any goroutine may call them. They read files, so they do not belong on a
// loop, except after a failure.
//
// # Errors
//
// There are none. A file that cannot be read sets no limit.
package hostlimits
