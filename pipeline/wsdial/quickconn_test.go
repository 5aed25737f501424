package wsdial

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
	"time"
)

// pair returns the two ends of a TCP connection, the first one quick.
func pair(t *testing.T) (net.Conn, net.Conn) {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	near, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	far, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = near.Close(), far.Close() })
	if _, ok := quicken(near).(quickConn); !ok {
		t.Fatal("a TCP connection is not quick")
	}
	return quicken(near), far
}

// TestQuickWrite writes more than the buffers of the kernel hold.
func TestQuickWrite(t *testing.T) {
	near, far := pair(t)
	sent := make([]byte, 32<<20)
	for i := range sent {
		sent[i] = byte(i / 251)
	}
	got := make(chan []byte)
	go func() {
		b, _ := io.ReadAll(far)
		got <- b
	}()
	if n, err := near.Write(sent); n != len(sent) || err != nil {
		t.Errorf("wrote %d bytes: %v", n, err)
	}
	_ = near.Close()
	if b := <-got; !bytes.Equal(b, sent) {
		t.Errorf("received %d bytes", len(b))
	}
	if _, err := near.Write(sent); !errors.Is(err, net.ErrClosed) {
		t.Errorf("after close: %v", err)
	}
}

func TestQuickWriteDeadline(t *testing.T) {
	near, _ := pair(t)
	b := make([]byte, 64<<20)
	if err := near.SetWriteDeadline(time.Now().Add(100 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	n, err := near.Write(b) // the peer does not read
	var timeout *net.OpError
	if !errors.Is(err, os.ErrDeadlineExceeded) || !errors.As(err, &timeout) || !timeout.Timeout() || timeout.Op != "write" || n == len(b) {
		t.Errorf("wrote %d bytes: %v", n, err)
	}
}

// TestQuickRead reads in pieces, waits for data, and sees the end of the connection and a deadline.
func TestQuickRead(t *testing.T) {
	near, far := pair(t)
	if n, err := near.Read(nil); n != 0 || err != nil {
		t.Errorf("no room: %d, %v", n, err)
	}
	if err := near.SetReadDeadline(time.Now().Add(10 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	var timeout *net.OpError
	if _, err := near.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) || !errors.As(err, &timeout) || !timeout.Timeout() || timeout.Op != "read" {
		t.Errorf("deadline: %v", err)
	}
	if err := near.SetReadDeadline(time.Time{}); err != nil {
		t.Fatal(err)
	}
	sent := make([]byte, 8<<20)
	for i := range sent {
		sent[i] = byte(i / 251)
	}
	go func() {
		_, _ = far.Write(sent)
		_ = far.Close()
	}()
	if got, err := io.ReadAll(near); !bytes.Equal(got, sent) || err != nil {
		t.Errorf("received %d bytes: %v", len(got), err)
	}
	_ = near.Close()
	if _, err := near.Read(make([]byte, 1)); !errors.Is(err, net.ErrClosed) {
		t.Errorf("after close: %v", err)
	}
}

func TestQuickReadReset(t *testing.T) {
	near, far := pair(t)
	_ = far.(*net.TCPConn).SetLinger(0)
	_ = far.Close()
	_, err := near.Read(make([]byte, 1))
	var op *net.OpError
	if !errors.As(err, &op) || op.Op != "read" || !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("%v", err)
	}
}

func TestQuickWriteToClosed(t *testing.T) {
	near, far := pair(t)
	_ = far.(*net.TCPConn).SetLinger(0)
	_ = far.Close()
	if _, err := near.Read(make([]byte, 1)); err == nil { // waits for the end of the connection
		t.Fatal("received a byte")
	}
	_, err := near.Write([]byte("x"))
	var op *net.OpError
	if !errors.As(err, &op) || op.Op != "write" {
		t.Errorf("%v", err)
	}
}
