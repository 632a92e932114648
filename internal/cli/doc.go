// Package cli is what the project's commands have in common: how they begin and end, what happens
// when standard output fails, how they print their build, and how an address is written on a
// command line.
//
// A command ends with status 0 when it has done what it was asked for. That includes a server that
// was ended by Ctrl-C, and a measurement that had measured something by then. The status is 130
// when Ctrl-C or SIGTERM ended the command before that. It is 1 after any other error, which is
// printed. When nobody reads its standard output any more, a command ends with SIGPIPE, as every
// command does. The first Ctrl-C asks a command to end, the second one kills it.
package cli
