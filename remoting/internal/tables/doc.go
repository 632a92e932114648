// Package tables holds the state that a node keeps because of other nodes: pending requests,
// watches, the actors that a peer may reach, and the nodes that were named. Each table is bounded,
// and defines what happens at the bound, whatever a peer does. None has a mutex: its owner has one.
package tables
