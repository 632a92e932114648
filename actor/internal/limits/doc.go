// Package limits bounds each peer's share of a runtime's listeners: the connections of identities,
// and the handshakes of unauthenticated peers. Each table has a floor, a fair share and a bound,
// and reports when the bound is reached. It knows no connections, and takes the time as an
// argument.
package limits
