// Package timing measures how long identifiers take for each step of a connection, as cmtime(1) of
// rdma-core up to v51 does: all identifiers take a step at once, and the next step begins when all
// have taken it. Nothing of ours is on the wire, so either side may be cmtime.
package timing
