// Package grpcstream calls gRPC methods over the HTTP/2 client of net/http
// (github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md). The caller encodes messages. Compression is
// not supported.
package grpcstream

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strconv"
	"sync"
	"time"

	"github.com/parley-voice/parley/pipeline"
)

const (
	// MaxMessage is the maximum size of a received message in bytes.
	MaxMessage = 4 << 20
	queued     = 16 // most messages that wait to be sent
	headerSize = 5  // bytes of a message's header: a flag and the length
)

// ErrClosed is the error of a stream that was closed locally.
var ErrClosed = errors.New("stream is closed")

const errFull = pipeline.TimeoutError("provider accepts data too slowly")

// A Stream is one call of a method. Only one goroutine calls Send and only one calls Receive. Close
// waits for the goroutine that runs the HTTP request.
type Stream struct {
	body   *body
	cancel context.CancelFunc
	done   chan struct{} // closed when the request has a response or has failed
	resp   *http.Response
	err    error
	sent   http.Header
	wg     sync.WaitGroup
	once   sync.Once
}

// Open starts a call of the method at address, such as
// "https://host:443/package.Service/Method". It returns once the connection is established,
// because a server may send its response headers late. ctx bounds only the opening. The
// client must speak HTTP/2 with the server and have no Timeout.
func Open(ctx context.Context, client *http.Client, address string, head http.Header) (*Stream, error) {
	life, cancel := context.WithCancel(context.WithoutCancel(ctx))
	connected := make(chan struct{}, 1)
	traced := httptrace.WithClientTrace(life, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) {
		select {
		case connected <- struct{}{}:
		default: // the HTTP client retries the request
		}
	}})
	s := &Stream{body: newBody(), cancel: cancel, done: make(chan struct{}), sent: head.Clone()}
	req, err := http.NewRequestWithContext(traced, http.MethodPost, address, s.body)
	if err != nil {
		cancel()
		return nil, err
	}
	if s.sent == nil {
		s.sent = http.Header{}
	}
	req.Header = s.sent.Clone()
	req.Header.Set("Content-Type", "application/grpc")
	req.Header.Set("Te", "trailers")
	req.ContentLength = -1
	s.wg.Go(func() {
		defer close(s.done)
		s.resp, s.err = client.Do(req) //nolint:bodyclose // Close closes it
	})
	select {
	case <-connected:
		return s, nil
	case <-s.done:
		if s.err == nil {
			return s, nil
		}
	case <-ctx.Done():
		s.cancel()
		s.wg.Wait()
		return nil, errors.Join(context.Cause(ctx), s.Close())
	}
	err = s.reason(s.err)
	return nil, errors.Join(err, s.Close())
}

// Call opens a stream for one request message.
func Call(ctx context.Context, client *http.Client, address string, head http.Header, request []byte) (*Stream, error) {
	s, err := Open(ctx, client, address, head)
	if err != nil {
		return nil, err
	}
	if err := s.Send(request, time.Second); err != nil && !errors.Is(err, ErrClosed) { // Receive returns the reason
		return nil, errors.Join(err, s.Close())
	}
	s.CloseSend()
	return s, nil
}

// Send queues a copy of the message. It fails if the queue stays full for limit. It also fails if the
// stream has ended; Receive then returns the reason.
func (s *Stream) Send(message []byte, limit time.Duration) error {
	return s.body.put(AppendMessage(make([]byte, 0, headerSize+len(message)), message), limit)
}

// CloseSend tells the server that no message follows. It may be called more than once.
func (s *Stream) CloseSend() { s.body.end() }

// Receive returns the next message, or io.EOF at the end of a successful call. If the server refused
// the call, the error is a *pipeline.RefusedError.
func (s *Stream) Receive() ([]byte, error) {
	<-s.done
	if s.err != nil {
		return nil, s.reason(s.err)
	}
	if s.resp.StatusCode != http.StatusOK {
		return nil, pipeline.NewRefusedError(s.resp, pipeline.RefusalText(s.resp, s.sent))
	}
	if s.resp.Header.Get("Grpc-Status") != "" { // the response has only trailers
		return nil, s.status(s.resp.Header)
	}
	b, err := ReadMessage(s.resp.Body)
	if errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, s.status(s.resp.Trailer)
	}
	if err != nil {
		return nil, s.reason(err)
	}
	return b, nil
}

// Close cancels the call and waits for its goroutine. It always returns nil and may be called more than once.
func (s *Stream) Close() error {
	s.once.Do(func() {
		s.cancel()
		s.body.stop()
		s.wg.Wait()
		if s.resp != nil {
			_ = s.resp.Body.Close() // the call was canceled
		}
	})
	return nil
}

// reason removes the address, which may hold a key, from an error of the HTTP client.
func (s *Stream) reason(err error) error {
	if wrapped, ok := errors.AsType[*url.Error](err); ok {
		err = wrapped.Err
	}
	return err
}

// status returns the error for the trailers of a call, or io.EOF if the call succeeded.
func (s *Stream) status(trailers http.Header) error {
	value := trailers.Get("Grpc-Status")
	code, err := strconv.Atoi(value)
	switch {
	case value == "":
		return fmt.Errorf("response without status: %w", io.ErrUnexpectedEOF)
	case err != nil:
		return fmt.Errorf("grpc-status %q: want a number", pipeline.Clean(value))
	case code == 0:
		return io.EOF
	}
	text, err := url.PathUnescape(trailers.Get("Grpc-Message"))
	if err != nil {
		text = trailers.Get("Grpc-Message")
	}
	return &pipeline.RefusedError{Status: httpStatus(code), Text: pipeline.Redact(text, s.sent, nil)}
}

// httpStatus maps a gRPC status code to an HTTP status
// (github.com/googleapis/googleapis/blob/master/google/rpc/code.proto). ABORTED and CANCELLED come from
// the server, so they do not count as faults of the request.
func httpStatus(code int) int {
	switch code {
	case 3, 9, 11: // codes INVALID_ARGUMENT, FAILED_PRECONDITION, OUT_OF_RANGE
		return http.StatusBadRequest
	case 4: // code DEADLINE_EXCEEDED
		return http.StatusGatewayTimeout
	case 5: // code NOT_FOUND
		return http.StatusNotFound
	case 6: // code ALREADY_EXISTS
		return http.StatusConflict
	case 7: // code PERMISSION_DENIED
		return http.StatusForbidden
	case 8: // code RESOURCE_EXHAUSTED
		return http.StatusTooManyRequests
	case 12: // code UNIMPLEMENTED
		return http.StatusNotImplemented
	case 1, 10, 14: // codes CANCELLED, ABORTED, UNAVAILABLE
		return http.StatusServiceUnavailable
	case 16: // code UNAUTHENTICATED
		return http.StatusUnauthorized
	default: // codes UNKNOWN, INTERNAL, DATA_LOSS
		return http.StatusInternalServerError
	}
}

// AppendMessage appends a message with its gRPC header to dst.
func AppendMessage(dst, message []byte) []byte {
	dst = binary.BigEndian.AppendUint32(append(dst, 0), uint32(len(message))) //nolint:gosec // bounded by memory
	return append(dst, message...)
}

// ReadMessage reads a message and its gRPC header. It returns io.EOF if r is at its end.
func ReadMessage(r io.Reader) ([]byte, error) {
	var head [headerSize]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint32(head[1:])
	switch {
	case head[0] != 0:
		return nil, errors.New("compressed message: not supported")
	case n > MaxMessage:
		return nil, fmt.Errorf("message of %d bytes: at most %d are accepted", n, MaxMessage)
	}
	b := make([]byte, n)
	if _, err := io.ReadFull(r, b); err != nil {
		return nil, fmt.Errorf("message: %w", unexpected(err))
	}
	return b, nil
}

func unexpected(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
