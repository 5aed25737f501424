package main

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-voice/parley/bench/demo"
	"github.com/parley-voice/parley/control/admission"
	"github.com/parley-voice/parley/control/apikeys"
	"github.com/parley-voice/parley/control/config"
	"github.com/parley-voice/parley/media/recorder"
	"github.com/parley-voice/parley/sip/siptest"
)

// TestFullDisk checks a server with too little free space. It must not be ready. It must refuse or hold calls that are
// recorded, and place other calls.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	var rang atomic.Int64
	c := carrier(t, &siptest.Carrier{Answer: func(siptest.Invite) siptest.Script {
		rang.Add(1)
		return siptest.Script{Status: 486}
	}})
	srv, api := startServer(t, c.Addr().String(), func(c *config.Config) { c.RecordingReserve = 1 << 60 })
	if got := fetch(t, srv.publicURL+"/readyz"); !strings.Contains(got, "not ready") {
		t.Errorf("ready: %s", got)
	}
	if got := fetch(t, srv.http.metricsURL()); !strings.Contains(got, "parley_recording_free_bytes ") {
		t.Error("the free space is not measured")
	}
	order := map[string]any{"agent_id": "demo", "to_number": demo.Number}
	var placed demo.Call
	err := api.Do(t.Context(), http.MethodPost, "/v1/calls/phone", order, &placed)
	if err == nil || !strings.Contains(err.Error(), "503 ") || !strings.Contains(err.Error(), "voice_backend_unavailable") || !strings.Contains(err.Error(), "disk space") {
		t.Errorf("a recorded call: %v", err)
	}
	// A queued call that another server accepted waits for space. It must not delay the next call.
	org, err := apikeys.FindOrganization(t.Context(), srv.db.Pool, "demo")
	if err != nil {
		t.Fatal(err)
	}
	queued, err := (&admission.Controller{Pool: srv.db.Pool, Store: srv.store}).Place(t.Context(), org, admission.Order{Agent: "demo", To: demo.Number}, nil)
	if err != nil {
		t.Fatal(err)
	}
	order["record"] = false
	var other demo.Call
	post(t, api, "/v1/calls/phone", order, &other)
	if call, _ := waitEnded(t, api, other.CallID); call.Reason != "busy" {
		t.Errorf("an unrecorded call: %+v", call)
	}
	if err = api.Do(t.Context(), http.MethodGet, "/v1/calls/"+queued.ID, nil, &placed); err != nil || placed.Status != "queued" {
		t.Errorf("a recorded call is %s, %v", placed.Status, err)
	}
	srv.allowAnyHour(t)
	id := campaign(t, api, nil, many(3)...)
	eventually(t, "contacts wait for disk space", func() bool {
		return readProgress(t, api, id).HeldReasons["recording_unavailable"] == 3
	})
	<-time.After(2 * time.Second)
	if n := rang.Load(); n != 1 {
		t.Errorf("%d calls were placed", n)
	}
}

// TestSoakDiskFull fills the disk of the recordings during a campaign and single calls. No call may be lost, recorded
// audio must be kept, and no call may be made without its recording. Calls must continue when there is space again.
func TestSoakDiskFull(t *testing.T) {
	soakOnly(t)
	s, over := newSoak(t, 0)
	s.allowCampaigns()
	dir := openDir(t)
	spool, ballast := filepath.Join(dir, "spool"), filepath.Join(dir, "spool", "ballast")
	if err := os.Mkdir(spool, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("tmpfs", spool, "tmpfs", 0, "size=8m"); err != nil {
		t.Skipf("only root may mount a small disk: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(spool, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	metrics := "127.0.0.1:" + freePort(t)
	s.environ = append(s.environ, "PARLEY_DATA_DIR="+dir, "PARLEY_RECORDING_RESERVE=1MB", "PARLEY_METRICS_ADDR="+metrics)
	cmd := s.serve()
	s.waitReady()
	const contacts = 100
	campaign(t, s.api, map[string]any{"calls_per_minute": 200}, many(contacts)...)
	eventuallyWithin(t, time.Minute, "calls are active", func() bool { return s.count("SELECT count(*) FROM calls WHERE status = 'ongoing'") >= 5 })
	fill, err := os.Create(ballast)
	if err != nil {
		t.Fatal(err)
	}
	for err == nil { // until the disk is full
		_, err = fill.Write(make([]byte, 4096))
	}
	_ = fill.Close()
	<-time.After(3 * time.Second)
	began := s.count("SELECT count(*) FROM calls")
	for i := range 10 {
		s.orderBoth(t, i)
	}
	<-time.After(10 * time.Second)
	if n := s.count("SELECT count(*) FROM calls WHERE recording_status <> 'disabled'"); n != began {
		t.Errorf("%d recorded calls started on a full disk", n-began)
	}
	if err = os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	eventuallyWithin(t, 3*time.Minute, "no contact is left", func() bool {
		return s.count("SELECT count(*) FROM contacts WHERE state IN ('pending', 'in_call')") == 0
	})
	eventuallyWithin(t, 2*time.Minute, "all webhooks were received", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return len(s.hooks) == s.count("SELECT count(*) FROM calls")
	})
	exported := fetch(t, "http://"+metrics+"/metrics")
	s.end(cmd)
	over()
	s.checkDisk(dir, exported)
	(&rollingRestart{soak: s}).check(10)
}

// orderBoth requests a recorded call, which must be refused, and a call without recording.
func (s *soak) orderBoth(t *testing.T, n int) {
	t.Helper()
	body := map[string]any{"agent_id": "demo", "to_number": fmt.Sprintf("+7701999%04d", n)}
	var placed demo.Call
	if err := s.api.Do(t.Context(), http.MethodPost, "/v1/calls/phone", body, &placed); err == nil || !strings.Contains(err.Error(), "disk space") {
		t.Errorf("a recorded call on a full disk: %v", err)
	}
	body["record"] = false
	if err := s.api.Do(t.Context(), http.MethodPost, "/v1/calls/phone", body, &placed); err != nil {
		t.Error(err)
	}
}

// checkDisk checks the recordings, including those that the full disk truncated.
func (s *soak) checkDisk(dir, exported string) {
	t := s.t
	answered := s.count("SELECT count(*) FROM calls WHERE answered_at IS NOT NULL AND recording_status <> 'disabled'")
	ready := s.count("SELECT count(*) FROM calls WHERE recording_status = 'ready'")
	cut := s.count("SELECT count(*) FROM calls WHERE recording_status = 'ready' AND recording_truncated")
	failed := s.count("SELECT count(*) FROM calls WHERE recording_status = 'failed'")
	if cut == 0 || ready+failed != answered {
		t.Errorf("of %d recordings %d are ready, %d of them truncated, %d failed", answered, ready, cut, failed)
	}
	if want := fmt.Sprintf("parley_recordings_total{result=\"truncated\"} %d\n", cut); !strings.Contains(exported, want) {
		t.Errorf("the metrics have no %s", want)
	}
	rows, err := s.db.Pool.Query(t.Context(), "SELECT recording_key FROM calls WHERE recording_truncated")
	if err != nil {
		t.Fatal(err)
	}
	keys, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	var heard time.Duration
	for _, key := range keys {
		left, _, rate, err := recorder.Read(filepath.Join(dir, "bucket", key))
		if err != nil || len(left) == 0 {
			t.Errorf("%s: %d samples, %v", key, len(left), err)
			continue
		}
		heard += time.Duration(len(left)) * time.Second / time.Duration(rate)
	}
	t.Logf("%d recordings of answered calls: %d ready, %d of them truncated (%v of audio), %d failed", answered, ready, cut, heard.Round(time.Second), failed)
}
