package workswith

import (
	"context"
	"errors"
	"io"
	"net/http"
	"testing"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// connect-go's client and server over HTTP/2: a unary call, an error, a stream in both directions.
func TestConnect(t *testing.T) {
	type text = wrapperspb.StringValue
	mux := http.NewServeMux()
	mux.Handle("/echo", connect.NewUnaryHandler("/echo", func(_ context.Context, r *connect.Request[text]) (*connect.Response[text], error) {
		if r.Msg.Value == "" {
			return nil, connect.NewError(connect.CodeInvalidArgument, errors.New("empty"))
		}
		return connect.NewResponse(r.Msg), nil
	}))
	mux.Handle("/chat", connect.NewBidiStreamHandler("/chat", func(_ context.Context, s *connect.BidiStream[text, text]) error {
		for {
			m, err := s.Receive()
			if errors.Is(err, io.EOF) {
				return nil
			}
			if err == nil {
				err = s.Send(m)
			}
			if err != nil {
				return err
			}
		}
	}))
	l, d := listen(t)
	http2 := new(http.Protocols)
	http2.SetUnencryptedHTTP2(true)
	server := &http.Server{Handler: mux, Protocols: http2}
	go func() { _ = server.Serve(l) }()
	defer func() { _ = server.Close() }()
	transport := &http.Transport{DialContext: d.DialContext, Protocols: http2}
	defer transport.CloseIdleConnections()
	client, url := &http.Client{Transport: transport}, "http://"+l.Addr().String()

	echo := connect.NewClient[text, text](client, url+"/echo")
	if r, err := echo.CallUnary(t.Context(), connect.NewRequest(wrapperspb.String("hello"))); err != nil || r.Msg.Value != "hello" {
		t.Errorf("%v, %v", r, err)
	}
	if _, err := echo.CallUnary(t.Context(), connect.NewRequest(wrapperspb.String(""))); connect.CodeOf(err) != connect.CodeInvalidArgument {
		t.Errorf("an empty text: %v", err)
	}
	s := connect.NewClient[text, text](client, url+"/chat").CallBidiStream(t.Context())
	for range 100 {
		if err := s.Send(wrapperspb.String("hello")); err != nil {
			t.Fatal(err)
		}
		if m, err := s.Receive(); err != nil || m.Value != "hello" {
			t.Fatalf("%v, %v", m, err)
		}
	}
	if err := errors.Join(s.CloseRequest(), s.CloseResponse()); err != nil {
		t.Error(err)
	}
}
