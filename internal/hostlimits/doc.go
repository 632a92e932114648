// Package hostlimits reads what this machine allows this process: threads, RDMA objects, locked
// memory. It reads files of /proc and of control groups, version 1 and 2, and changes nothing. Each
// limit names the file that sets it, so that an error can.
//
// # Ownership
//
// Functions keep nothing. Any goroutine may call them. They read files, so they do not belong on a
// loop, except where something has failed already.
//
// # Errors
//
// There are none. What cannot be read limits nothing.
package hostlimits
