package timing

import "github.com/rdmactor/rdmactor/cmid"

// OpenClient opens the device for a client's runs.
func OpenClient(c Config) (Client, error) {
	if c.Level == CMID {
		return openPlainClient(c)
	}
	return openActorClient(c)
}

// Listen opens the device and listens at the address at.
func Listen(c Config, at cmid.Addr) (Server, error) {
	if c.Level == CMID {
		return listenPlain(c, at)
	}
	return listenActor(c, at)
}
