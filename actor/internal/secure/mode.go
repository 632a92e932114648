package secure

// Features are the bits of a hello's features byte that are about security.
type Features uint8

// The bits. A hello has at most one of the first two.
const (
	FeaturePSK    Features = 1 << 0
	FeatureTLS    Features = 1 << 1
	FeatureChaCha Features = 1 << 2 // in PSK mode, ChaCha20Poly1305 in place of AES256GCM

	featuresMask = FeaturePSK | FeatureTLS | FeatureChaCha
)

// PSKFeatures returns the features of a hello in PSK mode with a suite of that mode.
func PSKFeatures(s Suite) Features {
	if s == ChaCha20Poly1305 {
		return FeaturePSK | FeatureChaCha
	}
	return FeaturePSK
}

// Suite is the suite of PSK mode that the bits name.
func (f Features) Suite() Suite {
	if f&FeatureChaCha != 0 {
		return ChaCha20Poly1305
	}
	return AES256GCM
}

// hasMode reports whether there is a mode with these bits.
func (f Features) hasMode() bool {
	switch f & featuresMask {
	case 0, FeaturePSK, FeaturePSK | FeatureChaCha, FeatureTLS:
		return true
	}
	return false
}

// Same checks that the peer's hello names our mode and suite. It is where a hello that was stripped
// of its mode, or never had one, is refused. Other bits of the byte mean something else, and do not
// matter here.
func (f Features) Same(peer Features) error {
	f, peer = f&featuresMask, peer&featuresMask
	switch {
	case f == 0 && peer == 0:
		return nil
	case peer == 0:
		return newHandshakeError("the peer's side is not secured, and ours is")
	case !peer.hasMode():
		return newHandshakeError("the peer names no mode there is: %#x", uint8(peer))
	case f == 0:
		return newHandshakeError("the peer's side is secured, and ours is not")
	case f != peer:
		return newHandshakeError("the peer wants another mode or suite: %#x, ours is %#x", uint8(peer), uint8(f))
	}
	return nil
}
