package codec

// Codec is what package remoting asks of codecs. A *Registry is one. Its methods may be called on
// any goroutine, several at the same time.
type Codec interface {
	// Append appends the bytes of msg to dst, of which it changes nothing, and gives the name of
	// its type. If it returns an error nothing was appended, and out is dst.
	Append(dst []byte, msg any) (name string, out []byte, err error)
	// Decode gives the message of a type of that name that body is the bytes of. It keeps nothing
	// of body.
	Decode(name string, body []byte) (msg any, err error)
}

// MaxName is how long the name of a type may be, in bytes.
const MaxName = 512
