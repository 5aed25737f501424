package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/parley-voice/parley/bench/demo"
	"github.com/parley-voice/parley/control/db"
	"github.com/parley-voice/parley/control/db/dbtest"
	"github.com/parley-voice/parley/control/recording/s3/s3test"
	"github.com/parley-voice/parley/media/recorder"
	"github.com/parley-voice/parley/sip/siptest"
)

// notification is a webhook that a test received.
type notification struct {
	Type   string `json:"type"`
	CallID string `json:"call_id"`
	Call   struct {
		Reason    string  `json:"disconnection_reason"`
		Status    string  `json:"recording_status"`
		Truncated bool    `json:"recording_truncated"`
		URL       *string `json:"recording_url"`
	} `json:"call"`
	at time.Time
}

// notifications collects webhooks.
type notifications struct {
	mu  sync.Mutex
	all []notification
}

// ServeHTTP implements http.Handler.
func (n *notifications) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	x := notification{at: time.Now()}
	if json.NewDecoder(r.Body).Decode(&x) == nil {
		n.mu.Lock()
		n.all = append(n.all, x)
		n.mu.Unlock()
	}
	w.WriteHeader(http.StatusNoContent)
}

func (n *notifications) of(kind string) (notification, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	i := slices.IndexFunc(n.all, func(x notification) bool { return x.Type == kind })
	if i < 0 {
		return notification{}, false
	}
	return n.all[i], true
}

// recorded returns the left and right channel of a call's recording, as the server at base serves it.
func recorded(t testing.TB, base, url string) (left, right []int16) {
	t.Helper()
	_, path, _ := strings.Cut(url, "/recordings/")
	resp, err := http.Get(base + "/recordings/" + path)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	if err != nil || resp.StatusCode != http.StatusOK || resp.Header.Get("Content-Type") != "audio/wav" {
		t.Fatalf("%d %s: %v", resp.StatusCode, resp.Header.Get("Content-Type"), err)
	}
	name := filepath.Join(t.TempDir(), "r.wav")
	if err = os.WriteFile(name, text, 0o600); err != nil {
		t.Fatal(err)
	}
	left, right, rate, err := recorder.Read(name)
	if err != nil || rate != 8000 {
		t.Fatalf("%d Hz, %v", rate, err)
	}
	return left, right
}

// TestRecordingOfLostNode kills a node during a call. Another node sends the webhooks with a recording that lacks at
// most one segment. After the killed node has started again, the recording is complete.
func TestRecordingOfLostNode(t *testing.T) {
	t.Parallel()
	far, received := s3test.New(t), &notifications{}
	receiver := httptest.NewServer(received)
	t.Cleanup(receiver.Close)
	c := &siptest.Carrier{Listen: "127.0.0.1:0", Answer: func(siptest.Invite) siptest.Script {
		return siptest.Script{Status: http.StatusOK, Talk: listenFor(time.Minute)}
	}}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() }) // fails because the killed node does not answer the BYE
	url := dbtest.URL(t)
	d, err := db.Open(t.Context(), db.Config{URL: url, MaxConns: 4})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.Close)
	key, err := createDemo(t.Context(), d, fmt.Sprintf(demo.File, strings.TrimPrefix(receiver.URL, "http://"), demo.Secret, c.Addr().String()))
	if err != nil {
		t.Fatal(err)
	}
	nodes := [2]*soak{}
	for n := range nodes {
		addr := "127.0.0.1:" + freePort(t)
		nodes[n] = &soak{t: t, db: d, api: &demo.Client{URL: "http://" + addr, Key: key}, environ: []string{
			"PARLEYTEST_ROLE=parley", "PARLEY_DATABASE_URL=" + url, "PARLEY_DATA_DIR=" + openDir(t), "PARLEY_HTTP_ADDR=" + addr,
			"PARLEY_METRICS_ADDR=127.0.0.1:0", "PARLEY_SIP_ADDR=127.0.0.1:0", "PARLEY_WEBRTC_UDP_PORT=0", "PARLEY_LEASE=2s", "PARLEY_LIMIT_LOAD=false",
			"PARLEY_ALLOW_INSECURE_WEBHOOKS=true", "PARLEY_LOG_LEVEL=warn", "PARLEY_BUCKET_URL=" + far.BucketURL("p"), "PARLEY_S3_ID=" + s3test.ID,
			"PARLEY_S3_SECRET=" + s3test.Secret, "PARLEY_RECORDING_SEGMENT=5s", "PARLEY_RECORDING_TAKEOVER=4s",
		}}
	}
	first := nodes[0].serve()
	nodes[0].waitReady()
	id := requestCall(t, nodes[0].api, demo.Number)
	eventually(t, "the call is answered", func() bool { return readCall(t, nodes[0].api, id).Status == "ongoing" })
	second := nodes[1].serve() // after the call, so that it does not take the call
	eventuallyWithin(t, 20*time.Second, "a segment is stored", func() bool { return len(far.Keys("p/segments/"+id)) > 0 })
	nodes[1].waitReady()
	<-time.After(2 * time.Second) // the file is longer than the segment
	_ = first.Process.Kill()
	_ = first.Wait() // the process was killed
	lost := time.Now()
	whole := spoolLen(t, nodes[0].environ)
	var analyzed notification
	eventuallyWithin(t, 30*time.Second, "the call is analyzed", func() (ok bool) { analyzed, ok = received.of("call_analyzed"); return ok })
	if took := analyzed.at.Sub(lost); took > 20*time.Second {
		t.Errorf("call_analyzed came %v after the loss", took)
	}
	over, _ := received.of("call_ended")
	for _, x := range []notification{over, analyzed} {
		if x.CallID != id || x.Call.Reason != "node_lost" || x.Call.Status != "ready" || !x.Call.Truncated || x.Call.URL == nil {
			t.Fatalf("%+v", x)
		}
	}
	joined, _ := recorded(t, nodes[1].api.URL, *analyzed.Call.URL)
	if len(joined) < 5*8000 || len(joined)%(5*8000) != 0 || len(joined) < whole-6*8000 {
		t.Errorf("joined %d samples of %d", len(joined), whole)
	}
	first = nodes[0].serve()
	nodes[0].waitReady()
	eventually(t, "the complete recording is stored", func() bool { _, ok := far.Object("p/recordings/" + id + ".wav"); return ok })
	eventually(t, "the segments are deleted", func() bool { return len(far.Keys("p/segments/")) == 0 })
	left, _ := recorded(t, nodes[1].api.URL, *analyzed.Call.URL)
	if len(left) != whole || !slices.Equal(left[:len(joined)], joined) {
		t.Errorf("the complete recording has %d samples, want %d", len(left), whole)
	}
	nodes[0].end(first)
	nodes[1].end(second)
}

// spoolLen returns the number of samples in the only unfinished recording of a node.
func spoolLen(t testing.TB, environ []string) int {
	t.Helper()
	i := slices.IndexFunc(environ, func(s string) bool { return strings.HasPrefix(s, "PARLEY_DATA_DIR=") })
	dir := strings.TrimPrefix(environ[i], "PARLEY_DATA_DIR=")
	names, _ := filepath.Glob(filepath.Join(dir, "spool", "*"+recorder.Partial))
	if len(names) != 1 {
		t.Fatalf("unfinished recordings: %v", names)
	}
	text, err := os.ReadFile(names[0])
	if err != nil || !bytes.HasPrefix(text, []byte("RIFF")) {
		t.Fatal(err)
	}
	return (len(text) - recorder.HeaderLen) / recorder.SampleLen
}
