// Package beside is tests only: programs that run once on Proto.Actor's own remote, over gRPC, and
// once on package remoting, over the embedded device. Each counts what went well. Package remoting
// has to do all of it, and never less than Proto.Actor's remote. What docs/remoting.md lists as a
// difference is a program, too.
package beside
