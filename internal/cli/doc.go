// Package cli is the common part of the project's commands: how they start and end, how they handle
// failures of standard output, how they print their build, and how an address is written on a
// command line.
//
// A command ends with status 0 when it has succeeded. That includes a server that was ended by
// Ctrl-C, and a measurement that had results by then. The status is 130 when Ctrl-C or SIGTERM
// ended the command before that. It is 1 after any other error, which is printed. When its standard
// output is closed, a command ends with SIGPIPE, as every command does. The first Ctrl-C asks a
// command to end, the second one kills it.
package cli
