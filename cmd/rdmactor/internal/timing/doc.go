// Package timing measures how long identifiers take for each step of a connection, as cmtime(1) of
// rdma-core up to v51 does. All identifiers take a step at the same time, and the next step begins
// when all have finished it. Nothing of this project's protocol is on the wire, so either side may
// be cmtime.
package timing
