// Package cli is what the project's commands have in common: how they begin and end, what their
// standard output does when it takes nothing more, which build they are, and how an address is
// written on a command line.
//
// A command ends with status 0 when it has done what it was asked for, or as much of it as there
// was until Ctrl-C: a server that was ended, a measurement that has measured something. 130 is a
// command that Ctrl-C, or SIGTERM, has ended before that. 1 is everything else, and says what. A
// reader of its standard output that has gone ends it with SIGPIPE, as every command. The first
// Ctrl-C asks a command to end, the second does not ask.
package cli
