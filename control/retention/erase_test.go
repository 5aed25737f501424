package retention_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/callview"
	"github.com/parley-voice/parley/control/idempotency"
	"github.com/parley-voice/parley/control/recording"
	"github.com/parley-voice/parley/control/retention"
	"github.com/parley-voice/parley/control/store"
)

// TestUnsettledCallIsPurgedLater checks that the content of an expired call with unhandled events is deleted only after
// the events are handled.
func TestUnsettledCallIsPurgedLater(t *testing.T) {
	a := newFixture(t)
	a.exec(`UPDATE organizations SET settings = '{"retention": {"transcripts_days": 20}}'`)
	a.call(a.org, "call_1", "12025550123", 30)
	a.call(a.org, "call_2", "12025550123", 25)
	a.call(a.org, "call_3", "12025550123", 28)
	a.exec("UPDATE events SET done_at = NULL WHERE call_id IN ('call_1', 'call_2')")
	for range 2 {
		a.purge()
		if a.contentRows("call_1") == 0 || a.contentRows("call_2") == 0 || a.contentRows("call_3") != 0 {
			t.Fatal("the transcript of an unsettled call was purged, or others were not")
		}
	}
	a.exec("UPDATE events SET done_at = now() WHERE call_id = 'call_2'")
	a.purge()
	a.exec("UPDATE events SET done_at = now()")
	a.purge()
	if a.contentRows("call_1") != 0 || a.contentRows("call_2") != 0 {
		t.Errorf("%d and %d rows with content are left", a.contentRows("call_1"), a.contentRows("call_2"))
	}
	if n := a.count("organizations WHERE forgotten_until = $1", a.now.AddDate(0, 0, -20)); n != 1 {
		t.Error("the next pass starts from the beginning")
	}
}

// TestErasedCallInIdempotentResponse repeats the request that created an erased call. The response must show only that
// the call was created.
func TestErasedCallInIdempotentResponse(t *testing.T) {
	const erased, kept = "call_01ARZ3NDEKTSV4RRFFQ69G5FAV", "call_01ARZ3NDEKTSV4RRFFQ69G5FAW"
	a := newFixture(t)
	keys := &idempotency.Keys{Pool: a.db.Pool}
	for _, id := range []string{erased, kept} {
		a.call(a.org, id, "12025550123", 0)
		slot, _, err := keys.Begin(t.Context(), "key POST /v1/calls/phone", id, []byte{1})
		if err != nil {
			t.Fatal(err)
		}
		body, err := json.Marshal(callview.View{}.Call(control.Call{
			ID: id, Status: control.Queued, To: "12025550123", Metadata: map[string]any{"k": "canary"}, Variables: map[string]any{"v": "canary"},
		}, control.Transcript{}))
		if err == nil {
			err = slot.Settle(t.Context(), a.db.Pool, idempotency.Answer{Status: 202, Body: body})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err := a.purger.Erase(t.Context(), a.org, retention.Selection{Call: erased}); err != nil {
		t.Fatal(err)
	}
	for id, gone := range map[string]bool{erased: true, kept: false} {
		_, again, err := keys.Begin(t.Context(), "key POST /v1/calls/phone", id, []byte{1})
		if err != nil || again == nil || again.Status != 202 {
			t.Fatalf("%s: %+v, %v", id, again, err)
		}
		var response struct {
			CallID string `json:"call_id"`
			Status string `json:"status"`
		}
		if err = json.Unmarshal(again.Body, &response); err != nil || response.CallID != id || response.Status != "queued" {
			t.Errorf("%s: %s, %v", id, again.Body, err)
		}
		if text := string(again.Body); (strings.Contains(text, "canary") || strings.Contains(text, "2025550123")) == gone {
			t.Errorf("%s: %s", id, text)
		}
	}
}

// lockedBucket is a Bucket whose Delete fails.
type lockedBucket struct{ *recording.Folder }

func (lockedBucket) Delete(context.Context, string) error { return errors.New("503") }

// TestErasedRecordingIsNotServed checks that an erased recording is not served while the bucket is unavailable and the
// file still exists.
func TestErasedRecordingIsNotServed(t *testing.T) {
	a := newFixture(t)
	a.call(a.org, "call_1", "12025550123", 1)
	s := &store.Store{Pool: a.db.Pool}
	key, at, err := s.Recording(t.Context(), "call_1")
	if err != nil || key != "recordings/call_1.wav" || !at.Equal(a.now.AddDate(0, 0, -1)) {
		t.Fatalf("%q of %v: %v", key, at, err)
	}
	a.purger.Bucket = lockedBucket{a.bucket}
	if _, _, err = a.purger.Erase(t.Context(), a.org, retention.Selection{Call: "call_1"}); err == nil {
		t.Fatal("Erase reports no error while the bucket is unavailable")
	}
	if !a.recorded("call_1") {
		t.Fatal("the file was deleted")
	}
	if key, _, err = s.Recording(t.Context(), "call_1"); control.CodeOf(err) != control.CodeCallNotFound {
		t.Errorf("%q, %v", key, err)
	}
	a.purger.Bucket = a.bucket
	a.purge()
	if a.recorded("call_1") {
		t.Error("the file was not deleted")
	}
}

// TestEraseDeletesSegments checks that segments survive an erasure that skips their call, because it is active or its
// recording is not joined yet, and that a later erasure deletes them.
func TestEraseDeletesSegments(t *testing.T) {
	const id = "call_01ARZ3NDEKTSV4RRFFQ69G5FAV"
	a := newFixture(t)
	a.purger.Segments = func(ctx context.Context) error {
		return recording.SweepSegments(ctx, a.bucket, store.RecordingStore{Store: &store.Store{Pool: a.db.Pool}})
	}
	a.call(a.org, id, "12025550123", 1)
	left := func() (n int) {
		for _, err := range a.bucket.List(t.Context(), recording.SegmentPrefix) {
			if err != nil {
				t.Fatal(err)
			}
			n++
		}
		return n
	}
	erase := func(erased, skipped int) {
		t.Helper()
		if n, left, err := a.purger.Erase(t.Context(), a.org, retention.Selection{Call: id}); n != erased || left != skipped || err != nil {
			t.Errorf("%d erased, %d left, %v", n, left, err)
		}
	}
	for n := range 2 {
		if err := a.bucket.Put(t.Context(), fmt.Sprintf("segments/%s/%06d.wav", id, n), strings.NewReader("RIFF")); err != nil {
			t.Fatal(err)
		}
	}
	a.exec("UPDATE calls SET status = 'ongoing', recording_status = 'in_progress', recording_key = NULL")
	erase(0, 1)
	a.exec("UPDATE calls SET status = 'ended', recording_status = 'finalizing'")
	a.exec("UPDATE events SET done_at = NULL")
	erase(0, 1)
	if left() != 2 {
		t.Fatal("the segments of a call that is not settled were deleted")
	}
	joined := "segments/" + id + "/joined-000002.wav"
	if err := a.bucket.Put(t.Context(), joined, strings.NewReader("RIFF")); err != nil {
		t.Fatal(err)
	}
	a.exec("UPDATE calls SET recording_status = 'ready', recording_key = $1", joined)
	a.exec("UPDATE events SET done_at = now()")
	a.purge()
	if left() != 1 {
		t.Fatalf("%d files, want the joined recording", left())
	}
	erase(1, 0)
	if left() != 0 {
		t.Error("segments are left")
	}
}
