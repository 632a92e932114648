// Package limits counts what a runtime's listeners have promised to peers, so that nobody can have
// it all: the connections of identities, and handshakes of those that have shown none yet. Each
// table has a floor, a fair share and a bound, and says when the bound is met. It knows no
// connections, and takes the time as an argument.
package limits
