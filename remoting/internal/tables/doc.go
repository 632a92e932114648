// Package tables keeps what a node has to remember because of other nodes: whose answers are waited
// for, who watches whom, whom a peer may reach, and which nodes were named. Each table is bounded,
// and has an answer at the bound, whatever a peer does. None has a mutex: who owns it has one.
package tables
