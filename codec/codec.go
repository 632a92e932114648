package codec

// Codec encodes and decodes messages for package remoting. A *Registry is one. Its methods may be
// called on any goroutine, concurrently.
type Codec interface {
	// Append appends the bytes of msg to dst, whose bytes it does not change, and returns the name
	// of its type. If it returns an error, nothing was appended, and out is dst.
	Append(dst []byte, msg any) (name string, out []byte, err error)
	// Decode returns the message of the type with that name whose bytes are body. It keeps no
	// reference to body.
	Decode(name string, body []byte) (msg any, err error)
}

// MaxName is the largest length of a type's name, in bytes.
const MaxName = 512
