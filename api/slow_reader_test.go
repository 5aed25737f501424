package api

import (
	"io"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"
)

// TestSlowReaderOverTCP checks that a client that reads 160 KiB per second keeps its connection. With the kernel's default send buffer
// it would not.
func TestSlowReaderOverTCP(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	result := make(chan error, 1)
	s := &http.Server{ReadHeaderTimeout: time.Minute, Handler: withDeadline(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, fault := w.Write(make([]byte, 64<<20))
		result <- fault
	}), time.Second)}
	var serving sync.WaitGroup
	serving.Go(func() { _ = s.Serve(Listen(l)) })
	defer serving.Wait()
	defer func() { _ = s.Close() }()
	client, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = client.Close() }()
	if _, err = io.WriteString(client, "GET / HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for n := range 40 {
		select {
		case err = <-result:
			t.Fatalf("cut off after %d KiB: %v", 16*n, err)
		case <-tick.C:
			if _, err = io.ReadFull(client, make([]byte, 16<<10)); err != nil {
				t.Fatal(err)
			}
		}
	}
}
