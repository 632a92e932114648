package rpc

import (
	"bufio"
	"context"
	"encoding/hex"
	"errors"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/rdmactor/rdmactor/actor/actortest"
)

// spoken is a recorded line.
type spoken struct {
	client bool
	b      []byte
}

// repeated is a byte that is repeated in a recorded line.
var repeated = regexp.MustCompile(`([0-9a-f]{2})\{(\d+)\}`)

// recorded reads a recorded exchange.
func recorded(t *testing.T, file string) (lines []spoken) {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		who, data, _ := strings.Cut(s.Text(), " ")
		data = repeated.ReplaceAllStringFunc(data, func(run string) string {
			n, _ := strconv.Atoi(run[3 : len(run)-1])
			return strings.Repeat(run[:2], n)
		})
		b, err := hex.DecodeString(data)
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, spoken{who == "C", b})
	}
	return lines
}

// handleVersion1 registers the handlers of the recorded exchange.
func handleVersion1(s *Server) {
	handleEcho(s)
	handleCount(s)
	HandleRaw(s, fail, func(context.Context, []byte, []byte) ([]byte, error) {
		return nil, &Error{Code: 1001, Message: "no", Details: []byte("details")}
	})
	HandleRaw(s, block, func(ctx context.Context, _, _ []byte) ([]byte, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	})
}

// callVersion1 makes the calls of the recorded exchange.
func callVersion1(w *actortest.World, c *Client) {
	t, ctx := w.T(), w.T().Context()
	if got, err := CallRaw(WithMetadata(ctx, "key", "value"), c, echo, []byte("hello"), nil); err != nil || string(got) != "hello" {
		t.Error(got, err)
	}
	_, err := CallRaw(ctx, c, fail, []byte("x"), nil)
	var e *Error
	if !errors.As(err, &e) || e.Code != 1001 || e.Message != "no" || string(e.Details) != "details" {
		t.Error(err)
	}
	in, err := Open(ctx, c, count, wrapperspb.Int64(3))
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, err := range in.All() {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	if n != 3 {
		t.Errorf("%d items", n)
	}
	within, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	if _, err := CallRaw(within, c, echo, nil, nil); err != nil {
		t.Error(err)
	}
	ended := make(chan error, 1)
	go func() {
		_, err := CallRaw(within, c, block, nil, nil)
		ended <- err
	}()
	w.Wait()
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	w.Wait()
	endless, err := Open(ctx, c, count, wrapperspb.Int64(-1))
	if err != nil {
		t.Fatal(err)
	}
	w.Wait()
	endless.Close()
	w.Wait()
}
